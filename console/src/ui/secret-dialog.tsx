/** A value that is shown this once: it closes by a button that says so, or after a question. */

import type { ReactNode } from "react";
import { Dialog } from "./dialog";

interface SecretDialogProperties {
  readonly title: string;
  /** What to do with the value now. */
  readonly notice: string;
  readonly done?: string;
  readonly actions?: ReactNode;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function SecretDialog(properties: SecretDialogProperties) {
  const { title, notice, done = "I have copied it", actions, onClose, children } = properties;
  return (
    <Dialog
      title={title}
      isWide
      loss="What is shown here cannot be shown again. Close it all the same?"
      onClose={onClose}
    >
      <div className="form">
        <p className="notice notice-warn">{notice}</p>
        {children}
        <div className="row row-end">
          {actions}
          <button type="button" className="button button-main" onClick={onClose}>
            {done}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
