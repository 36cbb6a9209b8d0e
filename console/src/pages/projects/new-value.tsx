/** The value of a key, shown this once, with a first call that needs nothing but pasting. */

import { useEffect, useState } from "react";
import { apiWith, content } from "../../api/client";
import { LANGUAGES, type Language, snippet } from "../../base/snippets";
import { CopyBlock, CopyLine } from "../../ui/copying";
import { Choices } from "../../ui/fields";

export function NewValue({ value, onClose }: { value: string; onClose: () => void }) {
  const [language, setLanguage] = useState<Language>("curl");
  const model = useSomeModel(value);
  const call = { origin: window.location.origin, key: value, model: model ?? "MODEL" };
  const title = LANGUAGES.find((known) => known.value === language)?.title ?? "";
  return (
    <div className="form">
      <p className="notice notice-warn">
        Copy the key now. It is shown only once and cannot be recovered.
      </p>
      <CopyLine text={value} label="Key" />
      <div className="form">
        <Choices label="Language" value={language} options={LANGUAGES} onValue={setLanguage} />
        <CopyBlock text={snippet(language, call)} label={`First call with ${title}`} />
      </div>
      <div className="row row-end">
        <button type="button" className="button button-main" onClick={onClose}>
          I have copied it
        </button>
      </div>
    </div>
  );
}

/** A model that the new key can call, if it may look. */
function useSomeModel(key: string): string | null {
  const [model, setModel] = useState<string | null>(null);
  useEffect(() => {
    const abandon = new AbortController();
    content(apiWith(key).GET("/v1/models", { signal: abandon.signal })).then(
      ({ data }) => {
        const usable = data.find(({ is_ready, access }) => is_ready && access.available);
        setModel((usable ?? data[0])?.id ?? null);
      },
      // A key that may not list models, or a model that is not there, leaves the placeholder.
      () => setModel(null),
    );
    return () => abandon.abort();
  }, [key]);
  return model;
}
