/** A new Admin key: its permissions, its last day, and its value, which is shown once. */

import { type FormEvent, useState } from "react";
import { content, idempotencyKey } from "../../api/client";
import type { AdminPermission, CreateAdminKey as Creation } from "../../api/types";
import { DAY_SECONDS, dayFrom, isoDay } from "../../base/days";
import { CopyLine } from "../../ui/copying";
import { Dialog } from "../../ui/dialog";
import { SelectField, TextField } from "../../ui/fields";
import { FormEnd } from "../../ui/form-end";
import { useAct } from "../../ui/loading";
import { useNow } from "../../ui/now";
import { SecretDialog } from "../../ui/secret-dialog";
import { useSession } from "../../ui/session";
import { PermissionFields } from "./permission-fields";
import { PERMISSIONS, PRESETS, type Preset, permissionsOf } from "./permissions";

interface CreateAdminKeyProperties {
  readonly onCreated: () => void;
  readonly onClose: () => void;
}

export function CreateAdminKey({ onCreated, onClose }: CreateAdminKeyProperties) {
  const [value, setValue] = useState<string | null>(null);
  const take = (created: string) => {
    setValue(created);
    onCreated();
  };
  if (value === null) {
    return (
      <Dialog title="New Admin key" isWide onClose={onClose}>
        <AdminKeyForm onValue={take} onClose={onClose} />
      </Dialog>
    );
  }
  return (
    <SecretDialog
      title="Your new Admin key"
      notice="Copy the key now. It is shown only once and cannot be recovered."
      onClose={onClose}
    >
      <CopyLine text={value} label="Admin key" />
    </SecretDialog>
  );
}

interface AdminKeyFormProperties {
  readonly onValue: (value: string) => void;
  readonly onClose: () => void;
}

function AdminKeyForm({ onValue, onClose }: AdminKeyFormProperties) {
  const { admin } = useSession();
  const now = useNow();
  const [name, setName] = useState("");
  const [lastDay, setLastDay] = useState("");
  const [preset, setPreset] = useState<Preset>("none");
  const [permissions, setPermissions] = useState(permissionsOf("none"));
  const [key] = useState(idempotencyKey);
  const act = useAct();
  const create = (event: FormEvent) => {
    event.preventDefault();
    act.run(async () => {
      const created = await content(
        admin.POST("/manage/v1/organization/admin_api_keys", {
          params: { header: { "Idempotency-Key": key } },
          body: bodyOf(name, lastDay, preset === "all" ? null : permissions),
        }),
      );
      onValue(created.value ?? "");
    });
  };
  const start = (chosen: Preset) => {
    setPreset(chosen);
    setPermissions(permissionsOf(chosen));
  };
  return (
    <form className="form" onSubmit={create}>
      <TextField label="Name" value={name} onValue={setName} maxLength={200} required autoFocus />
      <SelectField
        label="Permissions"
        hint={
          preset === "all"
            ? "The key can do everything, including to revoke every other Admin key."
            : "Give the key only what its holder needs. You can take permissions away later, but not add any."
        }
        value={preset}
        options={PRESETS}
        onValue={start}
      />
      {preset !== "all" && (
        <PermissionFields offered={PERMISSIONS} chosen={permissions} onChosen={setPermissions} />
      )}
      <TextField
        label="Last day (optional)"
        hint="The key works until the end of this UTC day. Leave it empty for a key that does not expire."
        type="date"
        min={isoDay(now)}
        value={lastDay}
        onValue={setLastDay}
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

/** Without a list of permissions the key gets all, also those of later versions. */
function bodyOf(
  name: string,
  lastDay: string,
  permissions: readonly AdminPermission[] | null,
): Creation {
  const day = dayFrom(lastDay);
  return {
    name,
    ...(permissions === null ? {} : { permissions: [...permissions] }),
    ...(day === null ? {} : { expires_at: day + DAY_SECONDS }),
  };
}
