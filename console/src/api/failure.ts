/** Why an answer is not the one that was asked for. */

import type { components } from "./schema";

type Envelope = components["schemas"]["Envelope"];

export interface Explanation {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
  readonly requestId: string | null;
  /** What the key lacks, where that is the reason. */
  readonly missingPermission: string | null;
}

export class Failure extends Error {
  override readonly name = "Failure";
  readonly explanation: Explanation;

  constructor(explanation: Explanation) {
    super(explanation.message);
    this.explanation = explanation;
  }
}

/** Codes of the console itself; the gateway serves a page for every other one. */
const CODES_WITHOUT_A_PAGE = new Set(["unexpected_answer", "unreachable", "console_fault"]);

/** The page that says what to do about an error, or null if there is none. */
export function errorPage(code: string): string | null {
  return CODES_WITHOUT_A_PAGE.has(code) ? null : `/docs/errors/${code}`;
}

const POLICY_ID = /\bpol_[0-9a-f]{32}\b/g;

/** The policies that refused a request. Callers are told their IDs alone. */
export function refusingPolicies({ code, message }: Explanation): readonly string[] {
  return code === "policy_violation" ? [...new Set(message.match(POLICY_ID))] : [];
}

const SCOPE = /\bscope="([^"]+)"/;

/** The failure that a refusing answer tells of; its body may be anything, as a proxy's would be. */
export function failureOf(response: Response, body: unknown): Failure {
  const error = isEnvelope(body) ? body.error : null;
  const challenge = response.headers.get("www-authenticate") ?? "";
  return new Failure({
    status: response.status,
    code: error?.code ?? "unexpected_answer",
    message: error?.message ?? `The gateway answered with status ${response.status}.`,
    param: error?.param ?? null,
    requestId: error?.request_id ?? response.headers.get("x-request-id"),
    missingPermission: SCOPE.exec(challenge)?.[1] ?? null,
  });
}

function isEnvelope(body: unknown): body is Envelope {
  return (
    typeof body === "object" &&
    body !== null &&
    "error" in body &&
    typeof body.error === "object" &&
    body.error !== null &&
    "code" in body.error &&
    "message" in body.error
  );
}

/** No answer came at all: the gateway is down, or the network between. */
export function unreachable(): Failure {
  return new Failure({
    status: 0,
    code: "unreachable",
    message: "The gateway did not answer. Check the connection and try again.",
    param: null,
    requestId: null,
    missingPermission: null,
  });
}

/** Whatever was thrown, to be shown: what is no failure of the gateway is a fault of the console. */
export function asFailure(thrown: unknown): Failure {
  if (thrown instanceof Failure) return thrown;
  reportError(thrown);
  return new Failure({
    status: 0,
    code: "console_fault",
    message:
      "The console failed to show this. Reload the page; the browser's console has the details.",
    param: null,
    requestId: null,
    missingPermission: null,
  });
}

/** Somebody else's request has been abandoned; nobody waits for it. */
export function isAbandoned(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === "AbortError";
}

/** The judge could not answer, so that nothing was published. */
export function isUnjudged(thrown: unknown): boolean {
  return thrown instanceof Failure && thrown.explanation.code === "policy_not_judged";
}

/** Somebody else has changed what was to be changed. */
export function isStale(thrown: unknown): boolean {
  return thrown instanceof Failure && thrown.explanation.code === "revision_conflict";
}
