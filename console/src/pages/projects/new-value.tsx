/** The value of a key, shown this once, with a first call that needs nothing but pasting. */

import { type ReactNode, useEffect, useState } from "react";
import { content } from "../../api/client";
import { LANGUAGES, type Language, snippet } from "../../base/snippets";
import { CopyBlock, CopyLine } from "../../ui/copying";
import { Choices } from "../../ui/fields";
import { SecretDialog } from "../../ui/secret-dialog";
import { useSession } from "../../ui/session";

export interface NewKeyValue {
  readonly value: string;
  /** The models that the key may use; null for every one. */
  readonly models: readonly string[] | null;
}

interface NewValueProperties {
  readonly title: string;
  readonly made: NewKeyValue;
  readonly onClose: () => void;
  readonly children?: ReactNode;
}

export function NewValue({
  title,
  made: { value, models },
  onClose,
  children,
}: NewValueProperties) {
  const [language, setLanguage] = useState<Language>("curl");
  const model = useSomeModel(models) ?? "MODEL";
  const call = { origin: window.location.origin, key: value, model };
  const chosen = LANGUAGES.find((known) => known.value === language)?.title ?? "";
  return (
    <SecretDialog
      title={title}
      notice="Copy the key now. It is shown only once and cannot be recovered."
      onClose={onClose}
    >
      <CopyLine text={value} label="Key" />
      {children}
      <div className="form">
        <Choices label="Language" value={language} options={LANGUAGES} onValue={setLanguage} />
        <CopyBlock text={snippet(language, call)} label={`First call with ${chosen}`} />
      </div>
    </SecretDialog>
  );
}

/** A model for the example. The new key is not asked: it would count as used. */
function useSomeModel(allowed: readonly string[] | null): string | null {
  const { admin } = useSession();
  const [model, setModel] = useState<string | null>(allowed?.[0] ?? null);
  useEffect(() => {
    if (allowed !== null) return;
    const abandon = new AbortController();
    content(admin.GET("/manage/v1/organization/models", { signal: abandon.signal })).then(
      ({ data }) => {
        const usable = data.find(({ is_ready, access }) => is_ready && access.available);
        setModel((usable ?? data[0])?.id ?? null);
      },
      // An Admin key that may not list models leaves the placeholder.
      () => setModel(null),
    );
    return () => abandon.abort();
  }, [admin, allowed]);
  return model;
}
