/** What the reports say about the present, worked out from their buckets. */

import type { CostBucket, CreditEntry, UsageBucket } from "../../api/types";
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

export function requestsByDay(buckets: readonly UsageBucket[]): number[] {
  return buckets.map(({ results }) => results.reduce((total, { requests }) => total + requests, 0));
}
