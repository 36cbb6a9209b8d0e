import { describe, expect, it } from "vitest";
import type { CostBucket, CreditEntry } from "../../api/types";
import { DAY_SECONDS } from "../../base/days";
import { decimalOf, picoOf } from "../../base/money";
import { balances, growth, spendByDay, spentThisMonth, spentToday } from "./figures";

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
    actor: { type: "operator", id: null },
    created_at: FIRST + index * DAY_SECONDS + 5,
  };
}

// 30 and 31 October, 1 and 2 November.
const DAYS = spendByDay([bucket(0, "1"), bucket(1), bucket(2, "0.25", "0.5"), bucket(3, "2")]);

describe("the figures of the overview", () => {
  it("know what today cost, and the month so far", () => {
    expect(decimalOf(spentToday(DAYS, NOW))).toBe("2");
    expect(decimalOf(spentThisMonth(DAYS, NOW))).toBe("2.75");
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
});
