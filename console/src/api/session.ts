/** The browser's session: a cookie that no script can read, and short tokens that it is worth. */

import { Failure, failureOf, unreachable } from "./failure";

const PATH = "/console/session";
/** A token is renewed so long before its end, since requests take time. */
const MARGIN_MS = 30_000;

export interface OpenSession {
  readonly token: string;
  readonly token_seconds: number;
  readonly is_person: boolean;
  /** Of the person, or what lists show of the Admin key. */
  readonly name: string;
  readonly organization_id: string;
  /** Where a person may act; empty for an Admin key. */
  readonly organizations: ReadonlyArray<{ readonly id: string; readonly name: string }>;
}

export interface SessionState {
  readonly session: OpenSession | null;
  /** Leads to the OpenID provider; null without one. */
  readonly sign_in_url: string | null;
}

/** Ask who is signed in, with a token for the organization if it is one of theirs. */
export function readSession(organizationId: string | null): Promise<SessionState> {
  const query = organizationId === null ? "" : `?organization=${organizationId}`;
  return ask("GET", query);
}

export function signInWith(key: string): Promise<SessionState> {
  return ask("POST", "", { authorization: `Bearer ${key}` });
}

export function endSession(): Promise<{ readonly sign_out_url: string | null }> {
  return ask("DELETE", "");
}

async function ask<T>(method: string, query: string, headers: HeadersInit = {}): Promise<T> {
  let response: Response;
  try {
    response = await fetch(PATH + query, {
      method,
      headers,
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
      referrerPolicy: "no-referrer",
    });
  } catch {
    throw unreachable();
  }
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok || body === null) throw failureOf(response, body);
  return body as T;
}

/** The token of a session, renewed when it is used near its end. */
export class TokenSource {
  private token: string;
  private endsAt: number;
  private renewing: Promise<string> | null = null;

  constructor(
    private readonly session: OpenSession,
    /** Told once the gateway no longer knows the session. */
    private readonly onEnded: () => void,
  ) {
    this.token = session.token;
    this.endsAt = performance.now() + session.token_seconds * 1000;
  }

  current(): Promise<string> {
    if (performance.now() < this.endsAt - MARGIN_MS) return Promise.resolve(this.token);
    return this.renew();
  }

  /** The gateway refused the token: a session that goes on gets another one. */
  renew(): Promise<string> {
    this.renewing ??= this.fetchToken().finally(() => {
      this.renewing = null;
    });
    return this.renewing;
  }

  private async fetchToken(): Promise<string> {
    const { session } = await readSession(this.session.organization_id);
    if (session === null || session.organization_id !== this.session.organization_id) {
      this.onEnded();
      throw new Failure({
        status: 401,
        code: "session_ended",
        message: "Your session has ended.",
        param: null,
        requestId: null,
        missingPermission: null,
      });
    }
    this.token = session.token;
    this.endsAt = performance.now() + session.token_seconds * 1000;
    return this.token;
  }
}
