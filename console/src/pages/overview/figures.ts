/** What the reports say about the present, worked out from their buckets. */

import type { CostBucket, CreditEntry, PolicyRollup } from "../../api/types";
import { dayOf, type Instant, monthOf } from "../../base/days";
import { total } from "../../base/lists";
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

export function spentSince(days: readonly DaySpend[], start: Instant): PicoUsd {
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

/** Matches of all policies, a figure for each of the days. */
export function matchesByDay(rollups: readonly PolicyRollup[], days: readonly Instant[]): number[] {
  return days.map((day) =>
    total(rollups.filter(({ start_time }) => start_time === day).map(({ matches }) => matches)),
  );
}
