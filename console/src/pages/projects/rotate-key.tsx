/** A new secret for an old key: caps, limits, permissions and history stay with it. */

import { type FormEvent, useState } from "react";
import { content, idempotencyKey } from "../../api/client";
import type { ProjectKey } from "../../api/types";
import { Dialog } from "../../ui/dialog";
import { type Option, SelectField } from "../../ui/fields";
import { FormEnd } from "../../ui/form-end";
import { useAct } from "../../ui/loading";
import { useSession } from "../../ui/session";
import { NewValue } from "./new-value";

const OVERLAPS = [
  { value: "0", title: "No time: it stops at once" },
  { value: "3600", title: "1 hour" },
  { value: "86400", title: "1 day" },
  { value: "604800", title: "7 days" },
] as const satisfies ReadonlyArray<Option<string>>;

type Overlap = (typeof OVERLAPS)[number]["value"];

interface RotateKeyProperties {
  readonly projectId: string;
  readonly apiKey: ProjectKey;
  readonly onRotated: () => void;
  readonly onClose: () => void;
}

export function RotateKey({ projectId, apiKey, onRotated, onClose }: RotateKeyProperties) {
  const { admin } = useSession();
  const [overlap, setOverlap] = useState<Overlap>("86400");
  const [value, setValue] = useState<string | null>(null);
  const [key] = useState(idempotencyKey);
  const act = useAct();
  const rotate = (event: FormEvent) => {
    event.preventDefault();
    act.run(async () => {
      const rotated = await content(
        admin.POST("/manage/v1/organization/projects/{project_id}/api_keys/{api_key_id}/rotate", {
          params: {
            path: { project_id: projectId, api_key_id: apiKey.id },
            header: { "Idempotency-Key": key },
          },
          body: { overlap_seconds: Number(overlap) },
        }),
      );
      setValue(rotated.value ?? "");
      onRotated();
    });
  };
  return (
    <Dialog
      title={value === null ? `Rotate “${apiKey.name}”` : "The new value"}
      isWide
      onClose={onClose}
    >
      {value !== null ? (
        <NewValue value={value} onClose={onClose} />
      ) : (
        <form className="form" onSubmit={rotate}>
          <p>
            The key gets a new value. Its ID, permissions, caps, limits and history do not change.
          </p>
          <SelectField
            label="The old value keeps working for"
            value={overlap}
            options={OVERLAPS}
            onValue={setOverlap}
          />
          <FormEnd act={act} verb="Rotate" onClose={onClose} />
        </form>
      )}
    </Dialog>
  );
}
