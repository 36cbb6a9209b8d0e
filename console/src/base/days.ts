/** Instants are Unix seconds and days are UTC, as in every report. */

export type Instant = number;

export const DAY_SECONDS = 86_400;
export const HOUR_SECONDS = 3_600;

const MONTHS = [
  "Jan",
  "Feb",
  "Mar",
  "Apr",
  "May",
  "Jun",
  "Jul",
  "Aug",
  "Sep",
  "Oct",
  "Nov",
  "Dec",
] as const;

export interface Span {
  readonly start: Instant;
  readonly end: Instant;
}

export function dayOf(at: Instant): Instant {
  return at - (at % DAY_SECONDS);
}

export function monthOf(at: Instant): Instant {
  const date = new Date(at * 1000);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth()) / 1000;
}

/** The first instant of the month before that of `at`. */
export function monthBefore(at: Instant): Instant {
  return monthOf(monthOf(at) - 1);
}

/** Today and the days before it, `count` in all. */
export function lastDays(count: number, now: Instant): Span {
  const tomorrow = dayOf(now) + DAY_SECONDS;
  return { start: tomorrow - count * DAY_SECONDS, end: tomorrow };
}

export function daysIn(span: Span): Instant[] {
  const days: Instant[] = [];
  for (let day = span.start; day < span.end; day += DAY_SECONDS) days.push(day);
  return days;
}

/** 2026-11-14 */
export function isoDay(at: Instant): string {
  return new Date(at * 1000).toISOString().slice(0, 10);
}

/** What a date field holds; null if it holds none. */
export function dayFrom(iso: string): Instant | null {
  const milliseconds = /^\d{4}-\d{2}-\d{2}$/.test(iso) ? Date.parse(`${iso}T00:00:00Z`) : NaN;
  return Number.isNaN(milliseconds) ? null : milliseconds / 1000;
}

/** 14 Nov */
export function shortDay(at: Instant): string {
  const date = new Date(at * 1000);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
}

/** 14 Nov 2026 */
export function longDay(at: Instant): string {
  return `${shortDay(at)} ${new Date(at * 1000).getUTCFullYear()}`;
}

/** 14 Nov 2026, 09:30 UTC */
export function moment(at: Instant): string {
  return `${longDay(at)}, ${new Date(at * 1000).toISOString().slice(11, 16)} UTC`;
}

/** 14 Nov 2026, 09:30:12 UTC */
export function exactMoment(at: Instant): string {
  return `${longDay(at)}, ${timeOfDay(at)} UTC`;
}

/** 09:30:12 */
export function timeOfDay(at: Instant): string {
  return new Date(at * 1000).toISOString().slice(11, 19);
}

const STEPS: ReadonlyArray<readonly [seconds: number, name: string]> = [
  [365 * DAY_SECONDS, "year"],
  [30 * DAY_SECONDS, "month"],
  [DAY_SECONDS, "day"],
  [HOUR_SECONDS, "hour"],
  [60, "minute"],
];

/** "3 hours ago", "in 2 days", "just now". A page takes the present once: what it changed after
 * that is ahead of it by seconds. */
export function relative(at: Instant, now: Instant): string {
  const distance = Math.abs(now - at);
  for (const [seconds, name] of STEPS) {
    const count = Math.floor(distance / seconds);
    if (count >= 1) {
      const length = `${count} ${name}${count === 1 ? "" : "s"}`;
      return at <= now ? `${length} ago` : `in ${length}`;
    }
  }
  return at <= now ? "just now" : "now";
}
