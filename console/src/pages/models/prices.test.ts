import { describe, expect, it } from "vitest";
import { isFree, perMillion } from "./prices";

describe("prices", () => {
  it.each([
    ["0.0000025", "$2.50"],
    ["0.00001", "$10.00"],
    ["0.000000000001", "$0.000001"],
    ["0", "$0.00"],
  ])("of %s per token are shown per million", (price, text) => {
    expect(perMillion(price)).toBe(text);
  });

  it("may be nothing", () => {
    expect(isFree("0")).toBe(true);
    expect(isFree("0.000000000001")).toBe(false);
  });
});
