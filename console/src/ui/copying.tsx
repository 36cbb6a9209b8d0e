/** Text that is there to be taken along. */

import { useRef, useState } from "react";

interface CopyProperties {
  readonly text: string;
  readonly label: string;
}

/** Without the clipboard, which needs HTTPS or localhost, the text is left selected instead. */
function useCopy(text: string, select: () => void) {
  const [isCopied, setCopied] = useState(false);
  const copy = () => {
    select();
    navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return { isCopied, copy };
}

function CopyButton({
  label,
  isCopied,
  onCopy,
}: {
  label: string;
  isCopied: boolean;
  onCopy: () => void;
}) {
  return (
    <>
      <button
        type="button"
        className="button button-small"
        aria-label={`Copy ${label}`}
        onClick={onCopy}
      >
        {isCopied ? "Copied" : "Copy"}
      </button>
      <span className="unseen" role="status">
        {isCopied ? `${label} copied` : ""}
      </span>
    </>
  );
}

/** One line, such as a key. */
export function CopyLine({ text, label }: CopyProperties) {
  const field = useRef<HTMLInputElement>(null);
  const { isCopied, copy } = useCopy(text, () => field.current?.select());
  return (
    <div className="copy">
      <input ref={field} className="input input-secret" aria-label={label} value={text} readOnly />
      <CopyButton label={label} isCopied={isCopied} onCopy={copy} />
    </div>
  );
}

/** Several lines, such as a program. */
export function CopyBlock({ text, label }: CopyProperties) {
  const block = useRef<HTMLPreElement>(null);
  const select = () => {
    if (block.current !== null) window.getSelection()?.selectAllChildren(block.current);
  };
  const { isCopied, copy } = useCopy(text, select);
  return (
    <div className="snippet">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard. */}
      <section className="scroll" aria-label={label} tabIndex={0}>
        <pre ref={block}>{text}</pre>
      </section>
      <CopyButton label={label} isCopied={isCopied} onCopy={copy} />
    </div>
  );
}
