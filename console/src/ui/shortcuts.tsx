/** Keys that work on every page, and the list of them. */

import { useEffect, useState } from "react";
import { Dialog } from "./dialog";
import { go } from "./navigation";

const FINDER = "[data-finder]";
const LIST = [
  ["/", "Look up a request by its ID"],
  ["?", "Show these shortcuts"],
  ["Esc", "Close a dialog"],
] as const;

export function Shortcuts() {
  const [isShown, show] = useState(false);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTyped(event)) return;
      if (event.key === "?") show(true);
      if (event.key !== "/") return;
      event.preventDefault();
      find();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  if (!isShown) return null;
  const close = () => show(false);
  return (
    <Dialog title="Shortcuts" onClose={close}>
      <div className="form">
        <dl className="facts">
          {LIST.map(([key, meaning]) => (
            <div key={key} className="fact">
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{meaning}</dd>
            </div>
          ))}
        </dl>
        <div className="row row-end">
          <button type="button" className="button" onClick={close}>
            Close
          </button>
        </div>
      </div>
    </Dialog>
  );
}

/** It belongs to a field, a dialog or the browser. */
function isTyped(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return true;
  if (document.querySelector("dialog[open]") !== null) return true;
  return (
    event.target instanceof Element && event.target.closest("input, textarea, select") !== null
  );
}

function find(): void {
  const field = document.querySelector<HTMLInputElement>(FINDER);
  if (field !== null) {
    field.focus();
    return;
  }
  go({ page: "requests" });
  requestAnimationFrame(() => document.querySelector<HTMLInputElement>(FINDER)?.focus());
}
