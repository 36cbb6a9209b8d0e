import { describe, expect, it } from "vitest";
import type { CostBucket, CreditEntry, PolicyRollup } from "../../api/types";
import { DAY_SECONDS, dayOf, monthOf } from "../../base/days";
import { decimalOf, picoOf } from "../../base/money";
import { balances, growth, matchesByDay, spendByDay, spentSince } from "./figures";

const FIRST = Date.UTC(2026, 9, 30) / 1000;
const NOW = FIRST + 3 * DAY_SECONDS + 60;

function bucket(index: number, ...amounts: string[]): CostBucket {
  return {
    object: "bucket",
    start_time: FIRST + index * DAY_SECONDS,
    end_time: FIRST + (index + 1) * DAY_SECONDS,
    results: amounts.map((value) => ({
      object: "organization.costs.result",
      amount: { value, currency: "usd" },
      line_item: null,
      project_id: null,
      api_key_id: null,
    })),
  };
}

function entry(index: number, value: string): CreditEntry {
  return {
    id: String(index),
    object: "organization.credit_entry",
    kind: "promotional",
    amount: { value, currency: "usd" },
    reason: "",
    actor: { type: "operator", id: null, name: null },
    created_at: FIRST + index * DAY_SECONDS + 5,
  };
}

// 30 and 31 October, 1 and 2 November.
const DAYS = spendByDay([bucket(0, "1"), bucket(1), bucket(2, "0.25", "0.5"), bucket(3, "2")]);

describe("the figures of the overview", () => {
  it("know what today cost, and the month so far", () => {
    expect(decimalOf(spentSince(DAYS, dayOf(NOW)))).toBe("2");
    expect(decimalOf(spentSince(DAYS, monthOf(NOW)))).toBe("2.75");
  });

  it("show how the month grew", () => {
    expect(growth(DAYS, NOW).map(decimalOf)).toEqual(["0.75", "2.75"]);
  });

  it("walk the balance back over what was spent and given", () => {
    const days = balances(picoOf("10"), DAYS, [entry(2, "5"), entry(0, "8")]);

    expect(days.map(decimalOf)).toEqual(["7.75", "7.75", "12", "10"]);
  });

  it("tell no balance of days whose usage was entered later", () => {
    expect(balances(picoOf("10"), DAYS, [{ ...entry(3, "1"), kind: "backfill" }])).toEqual([]);
  });

  it("count the matches of all policies by the day, and none where nothing was judged", () => {
    const rollup = {
      object: "organization.policy.rollup",
      start_time: FIRST,
      end_time: FIRST + DAY_SECONDS,
      version: 1,
      direction: "request",
      mode: "enforcing",
      matches: 3,
      no_matches: 9,
      failures: 1,
      skipped: 0,
      score_counts: [],
    } as const satisfies PolicyRollup;
    const later = { ...rollup, start_time: FIRST + 2 * DAY_SECONDS };
    const days = [FIRST, FIRST + DAY_SECONDS, FIRST + 2 * DAY_SECONDS];

    expect(matchesByDay([rollup, { ...rollup, version: 2 }, later], days)).toEqual([6, 0, 3]);
  });
});
