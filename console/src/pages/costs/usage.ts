/** Requests, tokens and costs of each model. */

import { type Api, content } from "../../api/client";
import type { UsageBucket } from "../../api/types";
import { walkReport } from "../../api/walking";
import type { Span } from "../../base/days";
import { type PicoUsd, picoOf } from "../../base/money";

const BUCKETS_MAX = 180;

export interface GroupUsage {
  readonly requests: number;
  readonly input: number;
  readonly cachedInput: number;
  readonly output: number;
  readonly amount: PicoUsd;
}

const NOTHING: GroupUsage = { requests: 0, input: 0, cachedInput: 0, output: 0, amount: 0n };

/** Read the settled usage of a span of days. */
export async function readUsage(
  admin: Api,
  span: Span,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, GroupUsage>> {
  const buckets = await walkReport((cursor) =>
    content(
      admin.GET("/manage/v1/organization/usage", {
        params: {
          query: {
            start_time: span.start,
            end_time: span.end,
            group_by: ["model"],
            limit: BUCKETS_MAX,
            ...cursor,
          },
        },
        signal,
      }),
    ),
  );
  return usageByGroup(buckets);
}

export function usageByGroup(buckets: readonly UsageBucket[]): ReadonlyMap<string, GroupUsage> {
  const usage = new Map<string, GroupUsage>();
  for (const result of buckets.flatMap(({ results }) => results)) {
    const group = result.model ?? "";
    const before = usage.get(group) ?? NOTHING;
    usage.set(group, {
      requests: before.requests + result.requests,
      input: before.input + result.input_tokens,
      cachedInput: before.cachedInput + result.cached_input_tokens,
      output: before.output + result.output_tokens,
      amount: before.amount + picoOf(result.amount.value),
    });
  }
  return usage;
}
