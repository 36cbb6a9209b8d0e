/** A new key: what it may spend and do, how long it lives, and its value, once. */

import { type FormEvent, useState } from "react";
import { content, idempotencyKey } from "../../api/client";
import { forgetNames } from "../../api/names";
import type { CreateManagedProjectKey } from "../../api/types";
import { DAY_SECONDS, dayFrom, isoDay } from "../../base/days";
import { namesIn } from "../../base/lists";
import { typed } from "../../base/money";
import { Dialog } from "../../ui/dialog";
import { CheckField, SelectField, TextField } from "../../ui/fields";
import { FormEnd } from "../../ui/form-end";
import { useAct } from "../../ui/loading";
import { useNow } from "../../ui/now";
import { useSession } from "../../ui/session";
import { AmountField, PERIOD_OPTIONS, type Period } from "../limits/set-cap";
import { type NewKeyValue, NewValue } from "./new-value";
import { MEANINGS, PERMISSIONS, type Permission } from "./permissions";

interface CreateKeyProperties {
  readonly projectId: string;
  readonly onCreated: () => void;
  readonly onClose: () => void;
}

export function CreateKey({ projectId, onCreated, onClose }: CreateKeyProperties) {
  const [made, setMade] = useState<NewKeyValue | null>(null);
  if (made !== null) return <NewValue title="Your new key" made={made} onClose={onClose} />;
  return (
    <Dialog title="New key" isWide onClose={onClose}>
      <KeyForm
        projectId={projectId}
        onClose={onClose}
        onMade={(created) => {
          setMade(created);
          onCreated();
        }}
      />
    </Dialog>
  );
}

interface KeyFormProperties {
  readonly projectId: string;
  readonly onMade: (made: NewKeyValue) => void;
  readonly onClose: () => void;
}

function KeyForm({ projectId, onMade, onClose }: KeyFormProperties) {
  const { admin } = useSession();
  const now = useNow();
  const [name, setName] = useState("");
  const [lastDay, setLastDay] = useState("");
  const [permissions, setPermissions] = useState<readonly Permission[]>(PERMISSIONS);
  const [models, setModels] = useState("");
  const [cap, setCap] = useState("");
  const [period, setPeriod] = useState<Period>("month");
  const [key] = useState(idempotencyKey);
  const act = useAct();
  const create = (event: FormEvent) => {
    event.preventDefault();
    act.run(async () => {
      const created = await content(
        admin.POST("/manage/v1/organization/projects/{project_id}/api_keys", {
          params: { path: { project_id: projectId }, header: { "Idempotency-Key": key } },
          body: bodyOf({ name, lastDay, permissions, models, cap, period }),
        }),
      );
      forgetNames(admin);
      onMade({ value: created.value ?? "", models: created.allowed_models });
    });
  };
  const toggle = (permission: Permission, isHeld: boolean) =>
    setPermissions(
      PERMISSIONS.filter((one) => (one === permission ? isHeld : permissions.includes(one))),
    );
  return (
    <form className="form" onSubmit={create}>
      <TextField label="Name" value={name} onValue={setName} maxLength={200} required autoFocus />
      <div className="bar">
        <AmountField label="Spending cap in USD (optional)" amount={cap} onAmount={setCap} />
        <SelectField
          label="The cap is for"
          value={period}
          options={PERIOD_OPTIONS}
          onValue={setPeriod}
        />
      </div>
      <TextField
        label="Last day (optional)"
        hint="The key works until the end of this UTC day. Leave it empty for a key that does not expire."
        type="date"
        min={isoDay(now)}
        value={lastDay}
        onValue={setLastDay}
      />
      <TextField
        label="Only these models (optional)"
        hint="Names, separated by commas. Leave it empty for every model of the project."
        value={models}
        onValue={setModels}
      />
      <fieldset className="field">
        <legend>Permissions</legend>
        {PERMISSIONS.map((permission) => (
          <CheckField
            key={permission}
            label={
              <>
                {MEANINGS[permission]} <code className="quiet">{permission}</code>
              </>
            }
            isChecked={permissions.includes(permission)}
            onValue={(isHeld) => toggle(permission, isHeld)}
          />
        ))}
      </fieldset>
      <FormEnd
        act={act}
        verb="Create key"
        isDisabled={permissions.length === 0 || (cap !== "" && typed(cap) === null)}
        onClose={onClose}
      />
    </form>
  );
}

interface KeyWishes {
  readonly name: string;
  readonly lastDay: string;
  readonly permissions: readonly Permission[];
  readonly models: string;
  readonly cap: string;
  readonly period: Period;
}

function bodyOf(wishes: KeyWishes): CreateManagedProjectKey {
  const { name, permissions, period } = wishes;
  const day = dayFrom(wishes.lastDay);
  const allowed = namesIn(wishes.models);
  const value = typed(wishes.cap);
  return {
    name,
    permissions: [...permissions],
    ...(day === null ? {} : { expires_at: day + DAY_SECONDS }),
    ...(allowed.length === 0 ? {} : { allowed_models: allowed }),
    ...(value === null ? {} : { spending_limit: { period, limit: { value, currency: "usd" } } }),
  };
}
