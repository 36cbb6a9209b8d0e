/** A new secret for an old key: caps, limits, permissions and history stay with it. */

import { type FormEvent, useState } from "react";
import { content, idempotencyKey } from "../../api/client";
import type { ProjectKey } from "../../api/types";
import { moment } from "../../base/days";
import { Dialog } from "../../ui/dialog";
import { Choices, type Option, SelectField } from "../../ui/fields";
import { FormEnd } from "../../ui/form-end";
import { useAct } from "../../ui/loading";
import { Link } from "../../ui/navigation";
import { useSession } from "../../ui/session";
import { NewValue } from "./new-value";

const OVERLAPS = [
  { value: "3600", title: "1 hour" },
  { value: "86400", title: "1 day" },
  { value: "604800", title: "7 days" },
] as const satisfies ReadonlyArray<Option<string>>;

const LEAKED = [
  { value: "yes", title: "Yes, or perhaps" },
  { value: "no", title: "No" },
] as const;

type Overlap = (typeof OVERLAPS)[number]["value"];
type Leaked = (typeof LEAKED)[number]["value"];

interface RotateKeyProperties {
  readonly projectId: string;
  readonly apiKey: ProjectKey;
  readonly onRotated: () => void;
  readonly onClose: () => void;
}

export function RotateKey({ projectId, apiKey, onRotated, onClose }: RotateKeyProperties) {
  const [rotated, setRotated] = useState<ProjectKey | null>(null);
  if (rotated === null) {
    return (
      <Dialog title={`Rotate “${apiKey.name}”`} isWide onClose={onClose}>
        <RotateForm
          projectId={projectId}
          apiKey={apiKey}
          onRotated={(key) => {
            setRotated(key);
            onRotated();
          }}
          onClose={onClose}
        />
      </Dialog>
    );
  }
  const ends = rotated.previous_value_expires_at;
  const made = { value: rotated.value ?? "", models: rotated.allowed_models };
  return (
    <NewValue title="The new value" made={made} onClose={onClose}>
      {ends === null ? (
        <p>
          The old value no longer works.{" "}
          <Link
            to={{ page: "requests", search: { project: projectId, key: apiKey.id, range: "30d" } }}
            target="_blank"
          >
            See what the key was used for
          </Link>{" "}
          (in a new tab).
        </p>
      ) : (
        <p>The old value works until {moment(ends)}. You can end it earlier in the list of keys.</p>
      )}
    </NewValue>
  );
}

interface RotateFormProperties {
  readonly projectId: string;
  readonly apiKey: ProjectKey;
  readonly onRotated: (key: ProjectKey) => void;
  readonly onClose: () => void;
}

function RotateForm({ projectId, apiKey, onRotated, onClose }: RotateFormProperties) {
  const { admin } = useSession();
  const [leaked, setLeaked] = useState<Leaked | null>(null);
  const [overlap, setOverlap] = useState<Overlap>("3600");
  const [key] = useState(idempotencyKey);
  const act = useAct();
  const rotate = (event: FormEvent) => {
    event.preventDefault();
    act.run(async () => {
      const params = {
        path: { project_id: projectId, api_key_id: apiKey.id },
        header: { "Idempotency-Key": key },
      };
      const body = { overlap_seconds: leaked === "no" ? Number(overlap) : 0 };
      onRotated(
        await content(
          admin.POST("/manage/v1/organization/projects/{project_id}/api_keys/{api_key_id}/rotate", {
            params,
            body,
          }),
        ),
      );
    });
  };
  return (
    <form className="form" onSubmit={rotate}>
      <p>The key gets a new value. Its ID, permissions, caps, limits and history do not change.</p>
      <Choices
        label="Has the old value leaked?"
        isLabelSeen
        value={leaked}
        options={LEAKED}
        onValue={setLeaked}
      />
      {leaked === "yes" && (
        <p className="notice notice-warn">
          The old value stops working within a second. Applications that use it fail until they have
          the new one.
        </p>
      )}
      {leaked === "no" && (
        <SelectField
          label="The old value keeps working for"
          hint="Give the new value to your applications in that time."
          value={overlap}
          options={OVERLAPS}
          onValue={setOverlap}
        />
      )}
      <FormEnd
        act={act}
        verb={leaked === "yes" ? "Rotate and end the old value" : "Rotate"}
        isDisabled={leaked === null}
        onClose={onClose}
      />
    </form>
  );
}
