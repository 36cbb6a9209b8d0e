/** A new key: what it may do, how long it lives, and its value, once. */

import { type FormEvent, useState } from "react";
import { content, idempotencyKey } from "../../api/client";
import { forgetNames } from "../../api/names";
import type { CreateManagedProjectKey } from "../../api/types";
import { DAY_SECONDS, dayFrom, isoDay } from "../../base/days";
import { namesIn } from "../../base/lists";
import { Dialog } from "../../ui/dialog";
import { CheckField, TextField } from "../../ui/fields";
import { FormEnd } from "../../ui/form-end";
import { useAct } from "../../ui/loading";
import { useNow } from "../../ui/now";
import { useSession } from "../../ui/session";
import { NewValue } from "./new-value";

const PERMISSIONS = ["inference:write", "models:read"] as const;
const MEANINGS = { "inference:write": "call models", "models:read": "list models" } as const;

type Permission = (typeof PERMISSIONS)[number];

interface CreateKeyProperties {
  readonly projectId: string;
  readonly onCreated: () => void;
  readonly onClose: () => void;
}

export function CreateKey({ projectId, onCreated, onClose }: CreateKeyProperties) {
  const [value, setValue] = useState<string | null>(null);
  return (
    <Dialog title={value === null ? "New key" : "Your new key"} isWide onClose={onClose}>
      {value === null ? (
        <KeyForm
          projectId={projectId}
          onClose={onClose}
          onValue={(created) => {
            setValue(created);
            onCreated();
          }}
        />
      ) : (
        <NewValue value={value} onClose={onClose} />
      )}
    </Dialog>
  );
}

interface KeyFormProperties {
  readonly projectId: string;
  readonly onValue: (value: string) => void;
  readonly onClose: () => void;
}

function KeyForm({ projectId, onValue, onClose }: KeyFormProperties) {
  const { admin } = useSession();
  const now = useNow();
  const [name, setName] = useState("");
  const [lastDay, setLastDay] = useState("");
  const [permissions, setPermissions] = useState<readonly Permission[]>(PERMISSIONS);
  const [models, setModels] = useState("");
  const [key] = useState(idempotencyKey);
  const act = useAct();
  const create = (event: FormEvent) => {
    event.preventDefault();
    act.run(async () => {
      const created = await content(
        admin.POST("/manage/v1/organization/projects/{project_id}/api_keys", {
          params: { path: { project_id: projectId }, header: { "Idempotency-Key": key } },
          body: bodyOf({ name, lastDay, permissions, models }),
        }),
      );
      forgetNames(admin);
      onValue(created.value ?? "");
    });
  };
  const toggle = (permission: Permission, isHeld: boolean) =>
    setPermissions(
      PERMISSIONS.filter((one) => (one === permission ? isHeld : permissions.includes(one))),
    );
  return (
    <form className="form" onSubmit={create}>
      <TextField label="Name" value={name} onValue={setName} maxLength={200} required autoFocus />
      <fieldset className="field">
        <legend>May</legend>
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
      <FormEnd
        act={act}
        verb="Create key"
        isDisabled={permissions.length === 0}
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
}

function bodyOf({ name, lastDay, permissions, models }: KeyWishes): CreateManagedProjectKey {
  const day = dayFrom(lastDay);
  const allowed = namesIn(models);
  return {
    name,
    permissions: [...permissions],
    ...(day === null ? {} : { expires_at: day + DAY_SECONDS }),
    ...(allowed.length === 0 ? {} : { allowed_models: allowed }),
  };
}
