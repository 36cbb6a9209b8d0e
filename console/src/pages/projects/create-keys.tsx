/** A key for each of a list of names, in one step; their values are shown once. */

import { type FormEvent, useRef, useState } from "react";
import { type Api, content, idempotencyKey } from "../../api/client";
import { forgetNames } from "../../api/names";
import type { CreateManagedProjectKey } from "../../api/types";
import { csv } from "../../base/csv";
import { linesIn } from "../../base/lists";
import { typed } from "../../base/money";
import { Dialog } from "../../ui/dialog";
import { download } from "../../ui/download";
import { TextArea } from "../../ui/fields";
import { FormEnd } from "../../ui/form-end";
import { useAct } from "../../ui/loading";
import { SecretDialog } from "../../ui/secret-dialog";
import { useSession } from "../../ui/session";
import { AmountField } from "../limits/set-cap";

const NAMES_MAX = 100;

interface CreateKeysProperties {
  readonly projectId: string;
  readonly onCreated: () => void;
  readonly onClose: () => void;
}

export function CreateKeys({ projectId, onCreated, onClose }: CreateKeysProperties) {
  const { admin } = useSession();
  const [text, setText] = useState("");
  const [cap, setCap] = useState("");
  const [made, setMade] = useState<ReadonlyArray<readonly [string, string]> | null>(null);
  // A second attempt sends the same key for a name, and gets what the first one made.
  const attempts = useRef(new Map<string, string>());
  const act = useAct();
  const names = linesIn(text);
  const isTooLong = names.length > NAMES_MAX;
  const value = typed(cap);
  const capped =
    value === null ? {} : { spending_limit: { limit: { value, currency: "usd" as const } } };
  const create = (event: FormEvent) => {
    event.preventDefault();
    act.run(async () => {
      const values: Array<readonly [string, string]> = [];
      for (const name of names) {
        const attempt = attempts.current.get(name) ?? idempotencyKey();
        attempts.current.set(name, attempt);
        values.push([name, await createKey(admin, projectId, attempt, { name, ...capped })]);
      }
      forgetNames(admin);
      setMade(values);
      onCreated();
    });
  };
  if (made !== null) return <NewValues values={made} onClose={onClose} />;
  return (
    <Dialog title="New keys" isWide onClose={onClose}>
      <form className="form" onSubmit={create}>
        <TextArea
          label="Names"
          hint="One on each line, such as the people of a team. Each key may call and list models."
          rows={8}
          value={text}
          onValue={setText}
          {...(isTooLong ? { fault: `At most ${NAMES_MAX} names at once.` } : {})}
          required
          autoFocus
        />
        <AmountField
          label="Monthly cap of each key in USD (optional)"
          amount={cap}
          onAmount={setCap}
        />
        <FormEnd
          act={act}
          verb="Create keys"
          isDisabled={names.length === 0 || isTooLong || (cap !== "" && value === null)}
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}

async function createKey(
  admin: Api,
  projectId: string,
  attempt: string,
  body: CreateManagedProjectKey,
): Promise<string> {
  const created = await content(
    admin.POST("/manage/v1/organization/projects/{project_id}/api_keys", {
      params: { path: { project_id: projectId }, header: { "Idempotency-Key": attempt } },
      body,
    }),
  );
  return created.value ?? "";
}

interface NewValuesProperties {
  readonly values: ReadonlyArray<readonly [string, string]>;
  readonly onClose: () => void;
}

function NewValues({ values, onClose }: NewValuesProperties) {
  const save = () => download("keys.csv", csv(["name", "key"], values), "text/csv;charset=utf-8");
  return (
    <SecretDialog
      title="Your new keys"
      notice="Download the keys now. They are shown only once and cannot be recovered."
      done="I have saved them"
      actions={
        <button type="button" className="button" onClick={save}>
          Download CSV
        </button>
      }
      onClose={onClose}
    >
      <dl>
        {values.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <code className="anywhere">{value}</code>
            </dd>
          </div>
        ))}
      </dl>
    </SecretDialog>
  );
}
