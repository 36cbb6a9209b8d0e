import { describe, expect, it } from "vitest";
import {
  dayFrom,
  dayOf,
  daysIn,
  exactMoment,
  isoDay,
  lastDays,
  longDay,
  moment,
  monthBefore,
  monthOf,
  relative,
} from "./days";

const NOW = Date.UTC(2026, 2, 1, 9, 30) / 1000;

describe("days", () => {
  it("begin at midnight UTC", () => {
    expect(isoDay(dayOf(NOW))).toBe("2026-03-01");
    expect(dayOf(dayOf(NOW))).toBe(dayOf(NOW));
  });

  it("know their month and the one before it", () => {
    expect(isoDay(monthOf(NOW))).toBe("2026-03-01");
    expect(isoDay(monthBefore(NOW))).toBe("2026-02-01");
    expect(isoDay(monthBefore(Date.UTC(2026, 0, 31) / 1000))).toBe("2025-12-01");
  });

  it("count back from today, today included", () => {
    expect(daysIn(lastDays(3, NOW)).map(isoDay)).toEqual([
      "2026-02-27",
      "2026-02-28",
      "2026-03-01",
    ]);
  });

  it.each([
    ["2026-03-01", "2026-03-01"],
    ["2026-13-01", null],
    ["", null],
    ["yesterday", null],
  ])("are read from a field: %j", (text, expected) => {
    const day = dayFrom(text);
    expect(day === null ? null : isoDay(day)).toBe(expected);
  });

  it("are written for people", () => {
    expect(longDay(NOW)).toBe("1 Mar 2026");
    expect(moment(NOW)).toBe("1 Mar 2026, 09:30 UTC");
    expect(exactMoment(NOW)).toBe("1 Mar 2026, 09:30:00 UTC");
  });

  it.each([
    [0, "just now"],
    [59, "just now"],
    [60, "1 minute ago"],
    [7_200, "2 hours ago"],
    [86_400, "1 day ago"],
    [-172_800, "in 2 days"],
    [40 * 86_400, "1 month ago"],
    [800 * 86_400, "2 years ago"],
  ])("are told from now: %d seconds", (seconds, text) => {
    expect(relative(NOW - seconds, NOW)).toBe(text);
  });
});
