/** A question that has to be answered first. The browser keeps the focus inside and knows Escape. */

import { type ReactNode, useEffect, useId, useRef } from "react";

interface DialogProperties {
  readonly title: string;
  readonly isWide?: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function Dialog({ title, isWide = false, onClose, children }: DialogProperties) {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    element.current?.showModal();
  }, []);
  return (
    <dialog
      ref={element}
      className={isWide ? "dialog-wide" : ""}
      aria-labelledby={titleId}
      onClose={onClose}
    >
      <h2 id={titleId}>{title}</h2>
      {children}
    </dialog>
  );
}
