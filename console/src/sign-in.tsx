/** Asks for a person at the OpenID provider, or for an Admin key. */

import { type FormEvent, useEffect, useState } from "react";
import { asFailure, type Failure } from "./api/failure";
import { type OpenSession, signInWith } from "./api/session";
import { TextField } from "./ui/fields";
import { Mark } from "./ui/mark";

interface SignInProperties {
  readonly signInUrl: string | null;
  readonly notice: string | null;
  onSession(session: OpenSession): void;
}

export function SignIn({ signInUrl, notice, onSession }: SignInProperties) {
  const [key, setKey] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState(notice ?? failedSignIn());
  useEffect(() => {
    document.title = "Sign in · Tollhouse";
  }, []);
  const enter = async (event: FormEvent) => {
    event.preventDefault();
    const given = key.trim();
    if (isBusy || given === "") return;
    setBusy(true);
    try {
      if (!/^[!-~]+$/.test(given)) throw NOT_A_KEY;
      const { session } = await signInWith(given);
      if (session !== null) onSession(session);
    } catch (thrown) {
      setFault(thrown === NOT_A_KEY ? NOT_A_KEY.message : worded(asFailure(thrown)));
    }
    setBusy(false);
  };
  return (
    <main className="door">
      <form onSubmit={enter}>
        <div className="wordmark">
          <Mark />
          Tollhouse
        </div>
        <h1>Sign in</h1>
        {fault !== null && (
          <p className="notice notice-bad" role="alert">
            {fault}
          </p>
        )}
        {signInUrl !== null && (
          <>
            <a className="button button-main" href={startOf(signInUrl)}>
              Sign in with your organization's account
            </a>
            <p className="quiet">Or with an Admin API key:</p>
          </>
        )}
        {signInUrl === null && (
          <div>
            <p>
              With an Admin API key of your organization. You stay signed in for 12 hours, or until
              the key is revoked. The browser does not keep the key.
            </p>
            <p>
              If you have none, the operator creates one with{" "}
              <code>tollhouse admin-key create</code>.
            </p>
          </div>
        )}
        <TextField
          label="Admin API key"
          type="password"
          autoComplete="off"
          spellCheck={false}
          autoFocus={signInUrl === null}
          required
          placeholder="tha_…"
          value={key}
          onValue={setKey}
        />
        <button
          type="submit"
          className={signInUrl === null ? "button button-main" : "button"}
          disabled={isBusy}
        >
          {isBusy ? "Signing in…" : signInUrl === null ? "Sign in" : "Sign in with the key"}
        </button>
      </form>
    </main>
  );
}

/** What the gateway adds to the address when a sign-in at the provider fails. */
const FAILED: Readonly<Record<string, string>> = {
  denied: "The provider did not sign you in.",
  expired: "This sign-in took too long, or it was started elsewhere. Start again.",
  refused: "The gateway could not verify what the provider said. Start again, or ask the operator.",
  unavailable: "The provider does not answer the gateway. Try again in a minute.",
  not_permitted:
    "You are signed in at the provider, but none of your groups may use this console. Ask the operator to grant one of them.",
};

function failedSignIn(): string | null {
  return FAILED[new URLSearchParams(window.location.search).get("sign_in") ?? ""] ?? null;
}

const NOT_A_KEY = new Error("This is not a key: it has a character that keys do not have.");

/** The provider leads back to the page that was asked for. */
function startOf(signInUrl: string): string {
  const query = new URLSearchParams(window.location.search);
  query.delete("sign_in");
  const search = query.size === 0 ? "" : `?${query}`;
  return `${signInUrl}?return_to=${encodeURIComponent(window.location.pathname + search)}`;
}

function worded({ explanation }: Failure): string {
  if (explanation.code === "wrong_key_type") {
    return "This is a project key. The console needs an Admin API key.";
  }
  if (explanation.code === "invalid_api_key") {
    return "The gateway does not know this key. It may be mistyped, revoked or expired.";
  }
  return explanation.message;
}
