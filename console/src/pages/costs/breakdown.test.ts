import { describe, expect, it } from "vitest";
import { namesFrom } from "../../api/names";
import type { CostBucket } from "../../api/types";
import { DAY_SECONDS } from "../../base/days";
import { decimalOf, picoOf } from "../../base/money";
import { breakdown, costsAsCsv, gathered } from "./breakdown";
import { usageByGroup } from "./usage";

const FIRST = Date.UTC(2026, 10, 1) / 1000;
const NAMES = namesFrom(
  new Map([
    ["p1", "Shop"],
    ["p2", "Search"],
  ]),
  new Map([["k1", { name: "Web", projectId: "p1" }]]),
);

interface Cost {
  readonly day: number;
  readonly value: string;
  readonly project?: string;
  readonly key?: string;
  readonly item?: string;
}

function buckets(...costs: Cost[]): CostBucket[] {
  return [0, 1].map((day) => ({
    object: "bucket",
    start_time: FIRST + day * DAY_SECONDS,
    end_time: FIRST + (day + 1) * DAY_SECONDS,
    results: costs
      .filter((cost) => cost.day === day)
      .map(({ value, project, key, item }) => ({
        object: "organization.costs.result",
        amount: { value, currency: "usd" },
        line_item: item ?? null,
        project_id: project ?? null,
        api_key_id: key ?? null,
      })),
  }));
}

describe("a breakdown of costs", () => {
  const costs = buckets(
    { day: 0, value: "1", project: "p1" },
    { day: 1, value: "0.5", project: "p1" },
    { day: 1, value: "7", project: "p2" },
  );

  it("has the most expensive group first, with a place for every day", () => {
    const { groups, total } = breakdown(costs, "project", NAMES);

    expect(groups.map(({ name }) => name)).toEqual(["Search", "Shop"]);
    expect(groups.map(({ amounts }) => amounts.map(decimalOf))).toEqual([
      ["0", "7"],
      ["1", "0.5"],
    ]);
    expect(decimalOf(total)).toBe("8.5");
  });

  it("sums the line items of a model, whose name may have a comma", () => {
    const items = buckets(
      { day: 0, value: "1", item: "large, v2, input" },
      { day: 0, value: "0.25", item: "large, v2, cached input" },
      { day: 1, value: "2", item: "small, output" },
    );

    const { groups } = breakdown(items, "model", NAMES);

    expect(groups.map(({ id, amounts }) => [id, amounts.map(decimalOf)])).toEqual([
      ["small", ["0", "2"]],
      ["large, v2", ["1.25", "0"]],
    ]);
  });

  it("tells keys of the same project apart", () => {
    const { groups } = breakdown(
      buckets(
        { day: 0, value: "1", project: "p1", key: "k1" },
        { day: 0, value: "2", project: "p1", key: "unknown-key-00000042" },
      ),
      "key",
      NAMES,
    );

    expect(groups.map(({ name, detail }) => `${detail}: ${name}`)).toEqual([
      "Shop: key …00000042",
      "Shop: Web",
    ]);
  });

  it("gathers what cannot be told apart by colour", () => {
    const many = buckets(
      ...["a", "b", "c", "d"].map((item, index) => ({ day: 0, value: `${9 - index}`, item })),
    );

    const shown = gathered(breakdown(many, "line_item", NAMES).groups, 3);

    expect(shown.map(({ name }) => name)).toEqual(["a", "b", "2 others"]);
    expect(shown.map(({ total }) => decimalOf(total))).toEqual(["9", "8", "13"]);
    expect(shown[2]?.amounts.map(decimalOf)).toEqual(["13", "0"]);
  });

  it("is written exactly, day by day", () => {
    const precise = buckets({ day: 1, value: "0.000000000001", project: "p1" });

    expect(costsAsCsv(breakdown(precise, "project", NAMES), "project")).toBe(
      "day,project_id,project,amount_usd\r\n2026-11-02,p1,Shop,0.000000000001\r\n",
    );
  });

  it("of nothing is nothing", () => {
    expect(breakdown(buckets(), "project", NAMES).groups).toEqual([]);
  });
});

describe("usage by model", () => {
  it("adds up the days of each model", () => {
    const used = { object: "organization.usage.result", estimated_requests: 0, images: 0 } as const;
    const none = { project_id: null, api_key_id: null };
    const amount = { value: "0.5", currency: "usd" } as const;
    const tokens = {
      input_tokens: 10,
      cached_input_tokens: 2,
      cache_write_tokens: 0,
      output_tokens: 5,
    };
    const results = [{ ...used, ...none, ...tokens, amount, requests: 3, model: "large" }];
    const span = { start_time: FIRST, end_time: FIRST } as const;
    const bucket = { object: "bucket", ...span, results } as const;

    const usage = usageByGroup([bucket, { ...bucket, results: [...results, ...results] }]);

    const sums = { requests: 9, input: 30, cachedInput: 6, output: 15, amount: picoOf("1.5") };
    expect(usage.get("large")).toEqual(sums);
    expect(usage.get("small")).toBeUndefined();
  });
});
