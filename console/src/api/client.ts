/** The one way to the API: typed by its OpenAPI document, on its own origin, by one credential. */

import createClient from "openapi-fetch";
import { failureOf, isAbandoned, unreachable } from "./failure";
import type { paths } from "./schema";
import type { TokenSource } from "./session";

export type Api = ReturnType<typeof client>;

/** The key lives in this closure and nowhere else: not in storage, a cookie or the address. */
export function apiWith(key: string): Api {
  return client((request) => {
    request.headers.set("authorization", `Bearer ${key}`);
    return reach(request);
  });
}

/** With the tokens of a session. A refused one is renewed, unless the session has ended. */
export function apiOf(tokens: TokenSource): Api {
  return client(async (request) => {
    const body = request.body === null ? null : await request.text();
    const send = (token: string) => {
      const sent = new Request(request, body === null ? {} : { body });
      sent.headers.set("authorization", `Bearer ${token}`);
      return reach(sent);
    };
    const response = await send(await tokens.current());
    return response.status === 401 ? send(await tokens.renew()) : response;
  });
}

function client(fetch: (request: Request) => Promise<Response>) {
  return createClient<paths>({
    baseUrl: window.location.origin,
    credentials: "omit",
    cache: "no-store",
    redirect: "error",
    referrerPolicy: "no-referrer",
    fetch,
  });
}

/** A browser throws the same for every reason not to get an answer, in words of its own. */
async function reach(request: Request): Promise<Response> {
  try {
    return await fetch(request);
  } catch (thrown) {
    if (isAbandoned(thrown)) throw thrown;
    throw unreachable();
  }
}

interface Outcome<T> {
  readonly data?: T;
  readonly error?: unknown;
  readonly response: Response;
}

/** The content of a good answer; any other is thrown as a `Failure`. */
export async function content<T>(outcome: Promise<Outcome<T>>): Promise<T> {
  return (await answer(outcome)).data;
}

/** The same, with the headers that came along. */
export async function answer<T>(
  outcome: Promise<Outcome<T>>,
): Promise<{ data: T; headers: Headers }> {
  const { data, error, response } = await outcome;
  if (!response.ok || data === undefined) throw failureOf(response, error);
  return { data, headers: response.headers };
}

/** For a creation: the same one again if the same person tries once more. */
export function idempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
