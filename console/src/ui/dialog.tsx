/** A question that has to be answered first. The browser keeps the focus inside and knows Escape. */

import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";

interface DialogProperties {
  readonly title: string;
  readonly isWide?: boolean;
  /** What is lost when the dialog closes; then Escape asks first. */
  readonly loss?: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function Dialog({ title, isWide = false, loss, onClose, children }: DialogProperties) {
  const element = useRef<HTMLDialogElement>(null);
  const [isAsking, ask] = useState(false);
  const titleId = useId();
  useEffect(() => {
    const opener = document.activeElement;
    element.current?.showModal();
    // A browser gives the focus back when a dialog is closed, and forgets it when one is removed.
    return () => {
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  // A browser closes a dialog by the second Escape even if the event `cancel` is prevented.
  const keepOpen = (event: KeyboardEvent) => {
    if (loss === undefined || event.key !== "Escape") return;
    event.preventDefault();
    ask(true);
  };
  return (
    <dialog
      ref={element}
      className={isWide ? "dialog-wide" : ""}
      aria-labelledby={titleId}
      onKeyDown={keepOpen}
      onCancel={(event) => {
        if (loss === undefined || event.target !== element.current) return;
        event.preventDefault();
        ask(true);
      }}
      onClose={onClose}
    >
      <h2 id={titleId}>{title}</h2>
      {children}
      {isAsking && (
        <div className="notice notice-bad parting" role="alert">
          <p>{loss}</p>
          <div className="row">
            <button
              ref={(button) => button?.focus()}
              type="button"
              className="button"
              onClick={() => ask(false)}
            >
              Keep it open
            </button>
            <button type="button" className="button button-grave" onClick={onClose}>
              Close without it
            </button>
          </div>
        </div>
      )}
    </dialog>
  );
}
