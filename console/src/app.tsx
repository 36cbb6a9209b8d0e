/** The door and what lies behind it. */

import { useMemo, useState } from "react";
import { apiWith } from "./api/client";
import { Shell } from "./shell";
import { SignIn } from "./sign-in";
import { type Session, SessionContext } from "./ui/session";

const SHOWN_OF_KEY = 10;
const SECRET_LENGTH = 49;
const REDACTED_START = 4;
const REDACTED_END = 4;

export function App() {
  const [adminKey, setAdminKey] = useState("");
  const [projectKey, holdProjectKey] = useState("");
  const session = useMemo<Session | null>(() => {
    if (adminKey === "") return null;
    return {
      admin: apiWith(adminKey),
      adminKeyStart: `${adminKey.slice(0, SHOWN_OF_KEY)}…`,
      redactedAdminKey: `${adminKey.slice(0, REDACTED_START - SECRET_LENGTH)}...${adminKey.slice(-REDACTED_END)}`,
      projectKey,
      holdProjectKey,
      signOut: () => {
        setAdminKey("");
        holdProjectKey("");
      },
    };
  }, [adminKey, projectKey]);
  if (session === null) return <SignIn onKey={setAdminKey} />;
  return (
    <SessionContext value={session}>
      <Shell />
    </SessionContext>
  );
}
