/** Take permissions from an Admin key, or revoke it. */

import { type FormEvent, useState } from "react";
import { content } from "../../api/client";
import type { AdminKey } from "../../api/types";
import { Confirmation } from "../../ui/confirmation";
import { Dialog } from "../../ui/dialog";
import { FormEnd } from "../../ui/form-end";
import { useAct } from "../../ui/loading";
import { Link } from "../../ui/navigation";
import { useSession } from "../../ui/session";
import { PermissionFields } from "./permission-fields";
import { known } from "./permissions";

interface ChangeProperties {
  readonly apiKey: AdminKey;
  /** The key that this session is signed in with. */
  readonly isOwn: boolean;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

export function NarrowAdminKey({ apiKey, isOwn, onChanged, onClose }: ChangeProperties) {
  const { admin } = useSession();
  const held = known(apiKey.permissions);
  const [kept, setKept] = useState(held);
  const act = useAct();
  const narrow = (event: FormEvent) => {
    event.preventDefault();
    act.run(async () => {
      await content(
        admin.POST("/manage/v1/organization/admin_api_keys/{api_key_id}/narrow", {
          params: { path: { api_key_id: apiKey.id } },
          body: { permissions: [...kept] },
        }),
      );
      onChanged();
      onClose();
    });
  };
  return (
    <Dialog title={`Reduce permissions of “${apiKey.name}”`} isWide onClose={onClose}>
      <form className="form" onSubmit={narrow}>
        <p>
          The key keeps its value and loses what you uncheck within a second. Permissions cannot be
          given back: create a new key if more are needed.
        </p>
        {isOwn && <OwnKeyNotice />}
        <PermissionFields offered={held} chosen={kept} onChosen={setKept} />
        <FormEnd
          act={act}
          verb="Reduce permissions"
          isDisabled={kept.length === 0 || kept.length === held.length}
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}

export function RevokeAdminKey({ apiKey, isOwn, onChanged, onClose }: ChangeProperties) {
  const { admin, signOut } = useSession();
  const revoke = async () => {
    await content(
      admin.DELETE("/v1/organization/admin_api_keys/{api_key_id}", {
        params: { path: { api_key_id: apiKey.id } },
      }),
    );
    if (isOwn) signOut();
    else onChanged();
  };
  return (
    <Confirmation
      title={`Revoke “${apiKey.name}”?`}
      verb="Revoke for good"
      isGrave
      onConfirm={revoke}
      onClose={onClose}
    >
      <div className="form">
        <p>
          The key stops working within a second. This cannot be undone. If it has leaked, see what
          it changed in the{" "}
          <Link to={{ page: "audit" }} target="_blank">
            audit log
          </Link>
          .
        </p>
        {isOwn && <OwnKeyNotice />}
      </div>
    </Confirmation>
  );
}

function OwnKeyNotice() {
  return (
    <p className="notice notice-warn">
      You are signed in with this key. Make sure that you have another one.
    </p>
  );
}
