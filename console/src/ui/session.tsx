/** Who is signed in, and where they act. */

import { createContext, use } from "react";
import type { Api } from "../api/client";
import type { OpenSession } from "../api/session";

export interface Session {
  readonly admin: Api;
  readonly opened: OpenSession;
  /** The Admin key as lists of keys show it; null for a person. */
  readonly redactedAdminKey: string | null;
  /** For the routes that only a project key opens; empty until somebody enters one. */
  readonly projectKey: string;
  holdProjectKey(key: string): void;
  actIn(organizationId: string): void;
  signOut(): void;
}

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = use(SessionContext);
  if (session === null) throw new Error("a page needs a session");
  return session;
}
