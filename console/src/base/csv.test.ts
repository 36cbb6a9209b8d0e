import { describe, expect, it } from "vitest";
import { csv } from "./csv";

describe("csv", () => {
  it("writes a head and rows", () => {
    expect(csv(["day", "amount"], [["2026-11-14", "0.25"]])).toBe(
      "day,amount\r\n2026-11-14,0.25\r\n",
    );
  });

  it.each([
    ["a, b", '"a, b"'],
    ['a "b"', '"a ""b"""'],
    ["two\nlines", '"two\nlines"'],
    ["=1+1", "'=1+1"],
    ["@SUM(A1)", "'@SUM(A1)"],
    ["-2", "'-2"],
    ["plain", "plain"],
  ])("writes %j so that it is read as text", (text, written) => {
    expect(csv([text], [])).toBe(`${written}\r\n`);
  });
});
