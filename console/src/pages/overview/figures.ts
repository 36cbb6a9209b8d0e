/** What the reports say about the present, worked out from their buckets. */

import type { CostBucket, CreditEntry, PolicyRollup, RequestRollupBucket } from "../../api/types";
import { dayOf, type Instant, monthOf } from "../../base/days";
import { type PicoUsd, picoOf, sum } from "../../base/money";

export interface DaySpend {
  readonly day: Instant;
  readonly spent: PicoUsd;
}

export function spendByDay(buckets: readonly CostBucket[]): DaySpend[] {
  return buckets.map(({ start_time, results }) => ({
    day: dayOf(start_time),
    spent: sum(results.map(({ amount }) => picoOf(amount.value))),
  }));
}

export function spentToday(days: readonly DaySpend[], now: Instant): PicoUsd {
  return spentSince(days, dayOf(now));
}

export function spentThisMonth(days: readonly DaySpend[], now: Instant): PicoUsd {
  return spentSince(days, monthOf(now));
}

function spentSince(days: readonly DaySpend[], start: Instant): PicoUsd {
  return sum(days.filter(({ day }) => day >= start).map(({ spent }) => spent));
}

/** The month's sum as it grew, day by day. */
export function growth(days: readonly DaySpend[], now: Instant): PicoUsd[] {
  let total = 0n;
  return days
    .filter(({ day }) => day >= monthOf(now))
    .map(({ spent }) => {
      total += spent;
      return total;
    });
}

/** The balance at the end of each day, walked back from the present one.
 *
 * Past usage that was entered later stands on its own day, and its credit on the day of entry: what
 * the balance was between cannot be told then.
 */
export function balances(
  present: PicoUsd,
  days: readonly DaySpend[],
  entries: readonly CreditEntry[],
): PicoUsd[] {
  if (entries.some(({ kind }) => kind === "backfill")) return [];
  const backwards: PicoUsd[] = [];
  let balance = present;
  for (const { day, spent } of [...days].reverse()) {
    backwards.push(balance);
    const given = entries.filter(({ created_at }) => dayOf(created_at) === day);
    balance += spent - sum(given.map(({ amount }) => picoOf(amount.value)));
  }
  return backwards.reverse();
}

/** One hour of traffic. */
export interface Hour {
  readonly requests: number;
  /** Answered with 4xx. */
  readonly refused: number;
  /** Answered with 5xx. */
  readonly failed: number;
  /** Input, cached or not, and output. */
  readonly tokens: number;
}

export function trafficByHour(buckets: readonly RequestRollupBucket[]): Hour[] {
  return buckets.map(({ results }) => {
    const failures = results.flatMap((result) => result.failures);
    const isOurs = ({ status }: { status: number }) => status >= 500;
    return {
      requests: requestsIn(results),
      refused: requestsIn(failures.filter((failure) => !isOurs(failure))),
      failed: requestsIn(failures.filter(isOurs)),
      tokens: total(
        results.map((each) => each.input_tokens + each.cached_input_tokens + each.output_tokens),
      ),
    };
  });
}

function requestsIn(counted: ReadonlyArray<{ readonly requests: number }>): number {
  return total(counted.map(({ requests }) => requests));
}

export function total(counts: readonly number[]): number {
  return counts.reduce((sum, each) => sum + each, 0);
}

/** Matches of all policies, a figure for each of the days. */
export function matchesByDay(rollups: readonly PolicyRollup[], days: readonly Instant[]): number[] {
  return days.map((day) =>
    total(rollups.filter(({ start_time }) => start_time === day).map(({ matches }) => matches)),
  );
}

export function traffic(hours: readonly Hour[]): Hour {
  return hours.reduce(
    (sum, hour) => ({
      requests: sum.requests + hour.requests,
      refused: sum.refused + hour.refused,
      failed: sum.failed + hour.failed,
      tokens: sum.tokens + hour.tokens,
    }),
    { requests: 0, refused: 0, failed: 0, tokens: 0 },
  );
}
