/** How many requests there were in each hour, and how they ended. */

import { useCallback } from "react";
import { content } from "../../api/client";
import type { RequestRollupBucket } from "../../api/types";
import type { Instant } from "../../base/days";
import { total } from "../../base/lists";
import { type Loading, useLoad } from "../../ui/loading";
import { useSession } from "../../ui/session";

/** Each request is in one of the counts of outcomes: they add up to all requests. */
export interface Traffic {
  readonly requests: number;
  readonly succeeded: number;
  /** The gateway or a backend was at fault. */
  readonly failed: number;
  /** A policy, a permission, a limit, a cap or the credit stopped it. */
  readonly refused: number;
  /** It was wrong, or its caller disconnected. */
  readonly clientErrors: number;
  /** Input, cached or not, and output. */
  readonly tokens: number;
}

/** The traffic of each hour from `start` on; null reads nothing. */
export function useTraffic(start: Instant): Loading<readonly RequestRollupBucket[]> {
  const { admin } = useSession();
  const load = useCallback(
    async (signal: AbortSignal) => {
      const query = { start_time: start };
      const page = await content(
        admin.GET("/manage/v1/organization/request_rollups", { params: { query }, signal }),
      );
      return page.data;
    },
    [admin, start],
  );
  return useLoad(load);
}

export function trafficIn(...buckets: readonly RequestRollupBucket[]): Traffic {
  const results = buckets.flatMap((bucket) => bucket.results);
  const count = (of: (result: (typeof results)[number]) => number) => total(results.map(of));
  const requests = count((each) => each.requests);
  const failed = count((each) => each.failed);
  const refused = count((each) => each.refused);
  const clientErrors = count((each) => each.client_errors);
  return {
    requests,
    succeeded: requests - failed - refused - clientErrors,
    failed,
    refused,
    clientErrors,
    tokens: count((each) => each.input_tokens + each.cached_input_tokens + each.output_tokens),
  };
}

/** The error codes of the buckets, by name. */
export function codesIn(buckets: readonly RequestRollupBucket[]): string[] {
  const failures = buckets.flatMap(({ results }) => results.flatMap((each) => each.failures));
  const codes = failures.flatMap(({ error_code }) => (error_code === null ? [] : [error_code]));
  return [...new Set(codes)].sort();
}
