import { describe, expect, it } from "vitest";
import { isWrong, NOTHING_TYPED, percentsOf, phrasesOf, thresholdsOf } from "./thresholds";

describe("thresholds of alerts", () => {
  it("are lists of whole percents", () => {
    expect(percentsOf("50, 80,100")).toEqual([50, 80, 100]);
    expect(percentsOf(" ")).toEqual([]);
    for (const wrong of ["0", "101", "8.5", "80;90", "80,,90", "eighty"]) {
      expect(percentsOf(wrong)).toBeNull();
    }
  });

  it("need one that is right, and none that is wrong", () => {
    const empty = { ...NOTHING_TYPED, caps: "" };
    expect(thresholdsOf(empty)).toBeNull();
    expect(thresholdsOf({ ...empty, matches: "many" })).toBeNull();
    expect(thresholdsOf({ ...NOTHING_TYPED, below: "some" })).toBeNull();
    expect(thresholdsOf({ ...empty, below: "5", matches: "7" })).toMatchObject({
      credit_below: { value: "5", currency: "usd" },
      policy_matches_per_hour: 7,
      unsettled_requests: null,
    });
  });

  it("are wrong one by one", () => {
    expect(isWrong("caps", "eighty")).toBe(true);
    expect(isWrong("below", "5")).toBe(false);
    expect(isWrong("matches", "")).toBe(false);
    expect(isWrong("unsettled", "0")).toBe(true);
  });

  it("are told in words", () => {
    const subscription = {
      cap_percents: [80],
      credit_percents: [],
      credit_below: { value: "5", currency: "usd" },
      policy_matches_per_hour: null,
      unsettled_requests: 3,
      backend_down: true,
    } as unknown as Parameters<typeof phrasesOf>[0];
    expect(phrasesOf(subscription)).toEqual([
      "caps at 80 %",
      "credit at or below $5.00",
      "3 requests without a final cost",
      "backends that are down",
    ]);
  });
});
