/** Requests and tokens of each model, beside what they cost. */

import { type Api, content } from "../../api/client";
import type { UsageBucket } from "../../api/types";
import { walkReport } from "../../api/walking";
import type { Span } from "../../base/days";

const BUCKETS_MAX = 180;

export interface ModelUsage {
  readonly requests: number;
  readonly input: number;
  readonly cachedInput: number;
  readonly output: number;
}

const NOTHING: ModelUsage = { requests: 0, input: 0, cachedInput: 0, output: 0 };

/** Read the settled usage of a span of days, by the name of the model. */
export async function readUsage(
  admin: Api,
  span: Span,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ModelUsage>> {
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
  return usageByModel(buckets);
}

export function usageByModel(buckets: readonly UsageBucket[]): ReadonlyMap<string, ModelUsage> {
  const usage = new Map<string, ModelUsage>();
  for (const result of buckets.flatMap(({ results }) => results)) {
    const model = result.model ?? "";
    const before = usage.get(model) ?? NOTHING;
    usage.set(model, {
      requests: before.requests + result.requests,
      input: before.input + result.input_tokens,
      cachedInput: before.cachedInput + result.cached_input_tokens,
      output: before.output + result.output_tokens,
    });
  }
  return usage;
}
