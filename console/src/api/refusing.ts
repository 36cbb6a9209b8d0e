/** Names of the policies that refused a request, for an Admin key; callers get at most their IDs. */

import { type Api, content } from "./client";
import { type Explanation, Failure, refusingPolicies } from "./failure";

export interface RefusingPolicy {
  readonly id: string;
  readonly name: string;
}

// Records and decisions are written after the answer was sent.
const PAUSES_MS = [500, 1000, 2000, 4000, 8000];

/** Return the policies behind a failure: those in its message, or those in the request's record. */
export async function readRefusingPolicies(
  admin: Api,
  explanation: Explanation,
  signal: AbortSignal,
  pausesMs: readonly number[] = PAUSES_MS,
): Promise<readonly RefusingPolicy[]> {
  const { code, requestId } = explanation;
  if (code === "policy_not_evaluable" && requestId !== null) {
    return recorded(admin, requestId, signal, pausesMs);
  }
  const named = refusingPolicies(explanation).map((id) => policy(admin, id, signal));
  return (await Promise.all(named)).filter((each) => each !== null);
}

async function policy(admin: Api, id: string, signal: AbortSignal): Promise<RefusingPolicy | null> {
  const params = { path: { policy_id: id } };
  try {
    const { name } = await content(
      admin.GET("/manage/v1/organization/policies/{policy_id}", { params, signal }),
    );
    return { id, name };
  } catch {
    return null;
  }
}

async function recorded(
  admin: Api,
  requestId: string,
  signal: AbortSignal,
  pausesMs: readonly number[],
): Promise<readonly RefusingPolicy[]> {
  for (const pauseMs of [...pausesMs, null]) {
    const found = await blockedBy(admin, requestId, signal);
    if (found === null || found.length > 0) return found ?? [];
    if (pauseMs !== null) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return [];
}

/** Nothing while the record is not written yet, and null if it cannot be read at all. */
async function blockedBy(
  admin: Api,
  requestId: string,
  signal: AbortSignal,
): Promise<readonly RefusingPolicy[] | null> {
  const params = { path: { request_id: requestId } };
  try {
    const record = await content(
      admin.GET("/manage/v1/organization/requests/{request_id}", { params, signal }),
    );
    const names = new Map(record.blocked_by.map(({ id, name }) => [id, name]));
    return [...names].map(([id, name]) => ({ id, name }));
  } catch (thrown) {
    const isMissing = thrown instanceof Failure && thrown.explanation.code === "request_not_found";
    return isMissing ? [] : null;
  }
}
