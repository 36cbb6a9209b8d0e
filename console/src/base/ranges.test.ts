import { describe, expect, it } from "vitest";
import { isoDay } from "./days";
import { type Range, spanOf } from "./ranges";

const NOW = Date.UTC(2026, 2, 3, 12) / 1000;

function days(range: Range, from = "", to = ""): string | null {
  const span = spanOf(range, NOW, from, to);
  return span === null ? null : `${isoDay(span.start)} ${isoDay(span.end)}`;
}

describe("ranges", () => {
  it.each([
    ["7d", "2026-02-25 2026-03-04"],
    ["month", "2026-03-01 2026-03-04"],
    ["last-month", "2026-02-01 2026-03-01"],
  ] as const)("end before tomorrow: %s", (range, expected) => {
    expect(days(range)).toBe(expected);
  });

  it.each([
    ["2026-01-01", "2026-01-01", "2026-01-01 2026-01-02"],
    ["2025-01-01", "2026-02-04", "2025-01-01 2026-02-05"],
    ["2025-01-01", "2026-02-05", null],
    ["2026-01-02", "2026-01-01", null],
    ["", "2026-01-01", null],
    ["1969-12-31", "1970-01-01", null],
  ])("are chosen from %j to %j", (from, to, expected) => {
    expect(days("custom", from, to)).toBe(expected);
  });
});
