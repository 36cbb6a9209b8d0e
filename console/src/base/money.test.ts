import { describe, expect, it } from "vitest";
import { decimalOf, picoOf, share, shown, sum, typed } from "./money";

describe("money", () => {
  it.each(["0", "12.5", "0.000000000001", "-3.25", "123456789012.123456789012"])(
    "keeps %s exactly",
    (value) => {
      expect(decimalOf(picoOf(value))).toBe(value);
    },
  );

  it.each(["", "1e3", ".5", "1.", "0.0000000000001", "NaN", "1,000"])("refuses %j", (value) => {
    expect(() => picoOf(value)).toThrow(RangeError);
  });

  it("adds what floats cannot", () => {
    expect(decimalOf(sum(["0.1", "0.2"].map(picoOf)))).toBe("0.3");
  });

  it.each([
    ["0", "$0.00"],
    ["1234567.5", "$1,234,567.50"],
    ["0.995", "$1.00"],
    ["999.995", "$1,000.00"],
    ["0.01", "$0.01"],
    ["0.00999", "$0.00999"],
    ["0.000123456", "$0.000123"],
    ["0.0001", "$0.0001"],
    ["0.000000000001", "$0.000000000001"],
    ["-3.25", "−$3.25"],
  ])("shows %s as %s", (value, text) => {
    expect(shown(picoOf(value))).toBe(text);
  });

  it.each([
    ["0", "10", 0],
    ["2.5", "10", 0.25],
    ["12", "10", 1],
    ["-1", "10", 0],
    ["1", "0", 1],
  ])("fills %s of %s", (part, whole, expected) => {
    expect(share(picoOf(part), picoOf(whole))).toBe(expected);
  });

  it.each([
    ["12.50", "12.5"],
    [" $1,000 ", "1000"],
    ["0", "0"],
    ["-1", null],
    ["a lot", null],
    ["1e3", null],
    ["1.0000000000001", null],
  ])("reads %j as typed", (text, expected) => {
    expect(typed(text)).toBe(expected);
  });
});
