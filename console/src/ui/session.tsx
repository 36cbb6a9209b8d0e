/** Who is signed in. It lives in memory: a reloaded page asks for the key again. */

import { createContext, use } from "react";
import type { Api } from "../api/client";

export interface Session {
  readonly admin: Api;
  /** Enough of the Admin key to know it by. */
  readonly adminKeyStart: string;
  /** The Admin key as lists of keys show it. */
  readonly redactedAdminKey: string;
  /** For the routes that only a project key opens; empty until somebody enters one. */
  readonly projectKey: string;
  holdProjectKey(key: string): void;
  signOut(): void;
}

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = use(SessionContext);
  if (session === null) throw new Error("a page needs a session");
  return session;
}
