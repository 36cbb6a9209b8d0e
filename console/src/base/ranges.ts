/** Ranges of whole days that reports are asked for. */

import {
  DAY_SECONDS,
  dayFrom,
  type Instant,
  lastDays,
  monthBefore,
  monthOf,
  type Span,
} from "./days";

export const RANGES = [
  { value: "7d", title: "7 days" },
  { value: "30d", title: "30 days" },
  { value: "90d", title: "90 days" },
  { value: "month", title: "This month" },
  { value: "last-month", title: "Last month" },
  { value: "custom", title: "From … to" },
] as const;

export type Range = (typeof RANGES)[number]["value"];

export const DAYS_MAX = 400;

/** The days of a range; null if the fields do not hold one that can be shown. */
export function spanOf(range: Range, now: Instant, from: string, to: string): Span | null {
  const tomorrow = lastDays(1, now).end;
  switch (range) {
    case "7d":
      return lastDays(7, now);
    case "30d":
      return lastDays(30, now);
    case "90d":
      return lastDays(90, now);
    case "month":
      return { start: monthOf(now), end: tomorrow };
    case "last-month":
      return { start: monthBefore(now), end: monthOf(now) };
    case "custom":
      return between(dayFrom(from), dayFrom(to));
  }
}

function between(first: Instant | null, last: Instant | null): Span | null {
  if (first === null || last === null || last < first || first < 0) return null;
  const end = last + DAY_SECONDS;
  return (end - first) / DAY_SECONDS > DAYS_MAX ? null : { start: first, end };
}
