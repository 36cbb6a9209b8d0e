/** The sign-in page and what lies behind it. */

import { useCallback, useEffect, useMemo, useState } from "react";
import { apiOf } from "./api/client";
import { asFailure } from "./api/failure";
import { endSession, type OpenSession, readSession, TokenSource } from "./api/session";
import { Shell } from "./shell";
import { SignIn } from "./sign-in";
import { go } from "./ui/navigation";
import { type Session, SessionContext } from "./ui/session";

/** What this tab acts in; each tab has its own choice, which a reload keeps. */
const CHOSEN = "tollhouse:organization";
const ENDED = "Your session has ended. Sign in again.";
const NOT_SIGNED_OUT =
  "The gateway did not answer, so you may still be signed in. Reload this page and sign out again.";

type Stage =
  | { readonly at: "asking" }
  | { readonly at: "door"; readonly signInUrl: string | null; readonly notice: string | null }
  | { readonly at: "inside"; readonly opened: OpenSession };

export function App() {
  const [stage, setStage] = useState<Stage>({ at: "asking" });
  const load = useCallback(async (notice: string | null) => {
    try {
      const state = await readSession(sessionStorage.getItem(CHOSEN));
      setStage(
        state.session === null
          ? { at: "door", signInUrl: state.sign_in_url, notice }
          : { at: "inside", opened: state.session },
      );
    } catch (thrown) {
      setStage({ at: "door", signInUrl: null, notice: asFailure(thrown).message });
    }
  }, []);
  useEffect(() => {
    load(null);
  }, [load]);
  if (stage.at === "asking") return <p className="waiting" aria-busy="true" />;
  if (stage.at === "inside") {
    return <Inside key={stage.opened.organization_id} opened={stage.opened} load={load} />;
  }
  return (
    <SignIn
      signInUrl={stage.signInUrl}
      notice={stage.notice}
      onSession={(opened) => setStage({ at: "inside", opened })}
    />
  );
}

interface InsideProperties {
  readonly opened: OpenSession;
  load(notice: string | null): Promise<void>;
}

function Inside({ opened, load }: InsideProperties) {
  const [projectKey, holdProjectKey] = useState("");
  const tokens = useMemo(() => new TokenSource(opened, () => load(ENDED)), [opened, load]);
  const admin = useMemo(() => apiOf(tokens), [tokens]);
  const session = useMemo<Session>(
    () => ({
      admin,
      opened,
      redactedAdminKey: opened.is_person ? null : opened.name,
      projectKey,
      holdProjectKey,
      actIn: (organizationId) => {
        sessionStorage.setItem(CHOSEN, organizationId);
        go({ page: "overview" });
        load(null);
      },
      signOut: () => {
        endSession().then(
          ({ sign_out_url }) => {
            sessionStorage.removeItem(CHOSEN);
            if (sign_out_url === null) load(null);
            else window.location.assign(sign_out_url);
          },
          () => load(NOT_SIGNED_OUT),
        );
      },
    }),
    [admin, opened, projectKey, load],
  );
  return (
    <SessionContext value={session}>
      <Shell />
    </SessionContext>
  );
}
