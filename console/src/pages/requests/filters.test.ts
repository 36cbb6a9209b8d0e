import { describe, expect, it } from "vitest";
import { instantIn, queryOf, type Wanted } from "./filters";

const NOW = Date.UTC(2026, 2, 3, 12, 30) / 1000;
const ALL: Wanted = {
  outcome: "all",
  range: "24h",
  project: "",
  key: "",
  model: "",
  code: "",
  policy: "",
  from: "",
  to: "",
};

describe("filters of requests", () => {
  it("ask for the last whole hours when none is set", () => {
    expect(queryOf(ALL, NOW)).toEqual({ start_time: NOW - 1_800 - 23 * 3_600 });
  });

  it("are sent by the names of the API", () => {
    const wanted: Wanted = {
      outcome: "refused",
      range: "custom",
      project: "p",
      key: "k",
      model: "m",
      code: "invalid_type",
      policy: "pol_1",
      from: "1970-01-01T00:01",
      to: "1970-01-01T00:02:30",
    };

    expect(queryOf(wanted, NOW)).toEqual({
      outcome: "refused",
      project_id: "p",
      api_key_id: "k",
      model: "m",
      error_code: "invalid_type",
      policy_id: "pol_1",
      start_time: 60,
      end_time: 150,
    });
  });

  it.each(["", "yesterday", "2026-11-17", "2026-99-99T00:00"])("have no instant in %j", (field) => {
    expect(instantIn(field)).toBeNull();
  });
});
