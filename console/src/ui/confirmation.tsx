/** Asked before what cannot be undone, or what somebody else will feel. */

import type { ReactNode } from "react";
import { Dialog } from "./dialog";
import { useAct } from "./loading";
import { Refusal } from "./refusal";

interface ConfirmationProperties {
  readonly title: string;
  readonly verb: string;
  readonly isGrave?: boolean;
  readonly children: ReactNode;
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
}

export function Confirmation(properties: ConfirmationProperties) {
  const { title, verb, isGrave = false, children, onConfirm, onClose } = properties;
  const act = useAct();
  const confirm = () =>
    act.run(async () => {
      await onConfirm();
      onClose();
    });
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="form">
        <div>{children}</div>
        {act.failure !== null && <Refusal failure={act.failure} />}
        <div className="row row-end">
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="button"
            className={isGrave ? "button button-grave" : "button button-main"}
            disabled={act.isBusy}
            onClick={confirm}
          >
            {verb}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
