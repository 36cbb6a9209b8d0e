/** Check boxes for the permissions of an Admin key. */

import type { AdminPermission } from "../../api/types";
import { CheckField } from "../../ui/fields";
import { MEANINGS } from "./permissions";

interface PermissionFieldsProperties {
  readonly offered: readonly AdminPermission[];
  readonly chosen: readonly AdminPermission[];
  readonly onChosen: (chosen: readonly AdminPermission[]) => void;
}

export function PermissionFields({ offered, chosen, onChosen }: PermissionFieldsProperties) {
  const toggle = (permission: AdminPermission, isHeld: boolean) =>
    onChosen(offered.filter((one) => (one === permission ? isHeld : chosen.includes(one))));
  return (
    <fieldset className="field">
      <legend>Permissions</legend>
      <div className="permissions">
        {offered.map((permission) => (
          <CheckField
            key={permission}
            label={
              <>
                {MEANINGS[permission]} <code className="quiet">{permission}</code>
              </>
            }
            isChecked={chosen.includes(permission)}
            onValue={(isHeld) => toggle(permission, isHeld)}
          />
        ))}
      </div>
    </fieldset>
  );
}
