import { describe, expect, it } from "vitest";
import type { CostBucket, CreditEntry, PolicyRollup, RequestRollupBucket } from "../../api/types";
import { DAY_SECONDS } from "../../base/days";
import { decimalOf, picoOf } from "../../base/money";
import {
  balances,
  growth,
  matchesByDay,
  spendByDay,
  spentThisMonth,
  spentToday,
  traffic,
  trafficByHour,
} from "./figures";

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

  it("count requests by the hour, and tell refusals from failures", () => {
    const result = {
      object: "organization.requests.result",
      requests: 10,
      failed: 2,
      client_errors: 3,
      failures: [
        { status: 429, error_code: "rate_limit_exceeded", requests: 3 },
        { status: 502, error_code: null, requests: 2 },
      ],
      input_tokens: 100,
      cached_input_tokens: 20,
      output_tokens: 3,
      mean_total_ms: 1,
      latency_counts: [],
      project_id: null,
      api_key_id: null,
      model: null,
    } as const satisfies RequestRollupBucket["results"][number];
    const hours = trafficByHour([
      { object: "bucket", start_time: 0, end_time: 3600, results: [] },
      { object: "bucket", start_time: 3600, end_time: 7200, results: [result] },
    ]);

    expect(hours).toEqual([
      { requests: 0, refused: 0, failed: 0, tokens: 0 },
      { requests: 10, refused: 3, failed: 2, tokens: 123 },
    ]);
    expect(traffic([...hours, ...hours])).toEqual({
      requests: 20,
      refused: 6,
      failed: 4,
      tokens: 246,
    });
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
