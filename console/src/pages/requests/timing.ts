/** Where the time of a request went, from its parts as the record has them. */

import type { RequestDetails, RequestRecord } from "../../api/types";

type Timings = RequestRecord["timings"];

export type Step = "queue" | "admission" | "judging" | "first byte" | "answer" | "rest";

export interface Stretch {
  readonly step: Step;
  readonly ms: number;
  /** Of the whole, between 0 and 1. */
  readonly share: number;
}

export const MEANINGS: Readonly<Record<Step, string>> = {
  queue: "waiting for a free slot",
  admission: "reserving credit",
  judging: "policies on the request, before the model was asked",
  "first byte": "until the model’s answer began",
  answer: "until it ended",
  rest: "everything else",
};

/** One after the other, those of no length left out; together they are the whole. */
export function stretches(timings: Timings): Stretch[] {
  const { total_ms: total, first_byte_ms: firstByte } = timings;
  const before = [
    ["queue", timings.queue_ms ?? 0],
    ["admission", timings.admission_ms ?? 0],
    ["judging", timings.judging_ms ?? 0],
  ] as const;
  const spent = before.reduce((sum, [, ms]) => sum + ms, 0);
  const after =
    firstByte === null
      ? ([["rest", total - spent]] as const)
      : ([
          ["first byte", firstByte - spent],
          ["answer", total - firstByte],
        ] as const);
  return [...before, ...after]
    .filter(([, ms]) => ms > 0)
    .map(([step, ms]) => ({ step, ms, share: total > 0 ? Math.min(ms / total, 1) : 0 }));
}

/** How long the caller waited for policies on the answer; null if none of them enforces. */
export function answerJudging(evaluations: RequestDetails["evaluations"]): number | null {
  const enforcing = evaluations.filter(
    ({ direction, mode }) => direction === "response" && mode === "enforcing",
  );
  return enforcing.length === 0
    ? null
    : enforcing.reduce((sum, { judging_ms }) => sum + judging_ms, 0);
}

/** 0.42 ms, 12 ms, 3.4 s */
export function duration(ms: number): string {
  if (ms >= 1000) return `${(ms / 1000).toFixed(ms >= 10_000 ? 0 : 1)} s`;
  return `${ms >= 10 ? ms.toFixed(0) : ms.toFixed(ms >= 1 ? 1 : 2)} ms`;
}
