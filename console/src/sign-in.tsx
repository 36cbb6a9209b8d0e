/** The door: asks for an Admin key, and believes it only when the gateway does. */

import { type FormEvent, useEffect, useState } from "react";
import { apiWith, content } from "./api/client";
import { asFailure, type Failure } from "./api/failure";
import { TextField } from "./ui/fields";
import { Mark } from "./ui/mark";

export function SignIn({ onKey }: { onKey: (key: string) => void }) {
  const [key, setKey] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState<string | null>(null);
  useEffect(() => {
    document.title = "Sign in · Tollhouse";
  }, []);
  const enter = async (event: FormEvent) => {
    event.preventDefault();
    const given = key.trim();
    if (isBusy || given === "") return;
    setBusy(true);
    const found = await faultOf(given);
    setBusy(false);
    setFault(found);
    if (found === null) onKey(given);
  };
  return (
    <main className="door">
      <form onSubmit={enter}>
        <div className="wordmark">
          <Mark />
          Tollhouse
        </div>
        <div>
          <h1>Sign in</h1>
          <p>
            With an Admin API key of your organization. It stays in the memory of this page: closing
            or reloading the page signs you out.
          </p>
          <p>
            You have none, or all were revoked? The operator makes one with{" "}
            <code>tollhouse admin-key create</code>. A key that holds{" "}
            <code>admin_api_keys:revoke</code> can revoke every other Admin key, even if it has no
            other permission.
          </p>
        </div>
        <TextField
          label="Admin API key"
          type="password"
          autoComplete="off"
          spellCheck={false}
          autoFocus
          required
          placeholder="tha_…"
          value={key}
          onValue={setKey}
        />
        {fault !== null && (
          <p className="notice notice-bad" role="alert">
            {fault}
          </p>
        )}
        <button type="submit" className="button button-main" disabled={isBusy}>
          {isBusy ? "Signing in…" : "Sign in"}
        </button>
      </form>
    </main>
  );
}

/** Any route tells whether a key is one; a permission that it lacks is no reason to stay outside. */
async function faultOf(key: string): Promise<string | null> {
  if (!/^[!-~]+$/.test(key)) return "This is not a key: it has a character that keys do not have.";
  try {
    const query = { limit: 1 };
    await content(apiWith(key).GET("/manage/v1/organization/projects", { params: { query } }));
    return null;
  } catch (thrown) {
    return worded(asFailure(thrown));
  }
}

function worded({ explanation }: Failure): string | null {
  if (explanation.missingPermission !== null) return null;
  if (explanation.code === "wrong_key_type") {
    return "This is a project key. The console needs an Admin API key.";
  }
  if (explanation.code === "invalid_api_key") {
    return "The gateway does not know this key. It may be mistyped, revoked or expired.";
  }
  return explanation.message;
}
