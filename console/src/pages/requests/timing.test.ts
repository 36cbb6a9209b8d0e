import { describe, expect, it } from "vitest";
import { answerJudging, duration, stretches } from "./timing";

const NOTHING = { queue_ms: null, admission_ms: null, judging_ms: null, first_byte_ms: null };

describe("the time of a request", () => {
  it("is all told, in order", () => {
    const parts = stretches({
      queue_ms: 10,
      admission_ms: 5,
      judging_ms: null,
      first_byte_ms: 40,
      total_ms: 100,
    });

    expect(parts.map(({ step, ms }) => [step, ms])).toEqual([
      ["queue", 10],
      ["admission", 5],
      ["first byte", 25],
      ["answer", 60],
    ]);
    expect(parts.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
  });

  it("of a request without an answer ends in a rest", () => {
    const parts = stretches({ ...NOTHING, admission_ms: 5, total_ms: 20 });

    expect(parts.map(({ step, ms }) => [step, ms])).toEqual([
      ["admission", 5],
      ["rest", 15],
    ]);
  });

  it("may be nothing", () => {
    expect(stretches({ ...NOTHING, total_ms: 0 })).toEqual([]);
  });

  it("has what policies on the answer took, of those that enforce", () => {
    const evaluation = { judging_ms: 20, decisions: [] };

    expect(
      answerJudging([
        { ...evaluation, direction: "response", mode: "enforcing" },
        { ...evaluation, direction: "response", mode: "monitoring" },
        { ...evaluation, direction: "request", mode: "enforcing" },
      ]),
    ).toBe(20);
    expect(answerJudging([{ ...evaluation, direction: "response", mode: "monitoring" }])).toBe(
      null,
    );
  });

  it.each([
    [0.123, "0.12 ms"],
    [1.26, "1.3 ms"],
    [42.4, "42 ms"],
    [3_400, "3.4 s"],
    [61_000, "61 s"],
  ])("is written so that it can be compared: %d", (ms, text) => {
    expect(duration(ms)).toBe(text);
  });
});
