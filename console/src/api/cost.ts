/** The cost of one request, which is recorded a moment after its answer. */

import { type Api, content } from "./client";
import { Failure } from "./failure";

const PAUSES_MS = [500, 1000, 1000, 2000, 4000, 8000];

/** Return the exact cost in US dollars; null if it is not known or the key may not read it. */
export async function readCost(
  admin: Api,
  requestId: string,
  signal: AbortSignal,
  pausesMs: readonly number[] = PAUSES_MS,
): Promise<string | null> {
  const params = { path: { request_id: requestId } };
  for (const pauseMs of [...pausesMs, null]) {
    try {
      const { cost } = await content(
        admin.GET("/manage/v1/organization/requests/{request_id}", { params, signal }),
      );
      return cost?.value ?? null;
    } catch (thrown) {
      if (signal.aborted || !isMissing(thrown) || pauseMs === null) return null;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return null;
}

function isMissing(thrown: unknown): boolean {
  return thrown instanceof Failure && thrown.explanation.code === "request_not_found";
}
