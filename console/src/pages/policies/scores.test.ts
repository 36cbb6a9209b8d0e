import { describe, expect, it } from "vitest";
import type { PolicyRollup } from "../../api/types";
import { BINS, heights, onScale, sideOf, tallyOf, wouldMatch, wouldMatchInWords } from "./scores";

/** As the gateway counts: the last hundredth also holds those that are sure. */
function countsOf(scores: readonly number[]): number[] {
  const counts = new Array<number>(BINS).fill(0);
  for (const score of scores) {
    const bin = Math.min(Math.floor(score / 100), BINS - 1);
    counts[bin] = (counts[bin] ?? 0) + 1;
  }
  return counts;
}

function rollup(version: number, scores: readonly number[]): PolicyRollup {
  return {
    object: "organization.policy.rollup",
    start_time: 0,
    end_time: 86_400,
    version,
    direction: "request",
    mode: "monitoring",
    matches: 1,
    no_matches: scores.length - 1,
    failures: 2,
    skipped: 3,
    score_counts: countsOf(scores),
  };
}

const SCORES = [0, 49, 4_999, 5_000, 8_000, 8_020, 8_050, 8_099, 8_100, 9_999, 10_000];

describe("another threshold", () => {
  it("matches exactly so many where it falls between two hundredths", () => {
    expect(wouldMatch(countsOf(SCORES), 8_000)).toEqual({ lowest: 7, highest: 7, scored: 11 });
    expect(wouldMatch(countsOf(SCORES), 5_000)).toEqual({ lowest: 8, highest: 8, scored: 11 });
  });

  it("matches between two figures where it cuts a hundredth that holds scores", () => {
    expect(wouldMatch(countsOf(SCORES), 8_050)).toEqual({ lowest: 3, highest: 7, scored: 11 });
  });

  it("is exact where it cuts an empty one", () => {
    expect(wouldMatch(countsOf(SCORES), 7_050)).toEqual({ lowest: 7, highest: 7, scored: 11 });
  });

  it("never leaves the truth outside of its bounds", () => {
    const isWrong = (threshold: number) => {
      const { lowest, highest } = wouldMatch(countsOf(SCORES), threshold);
      const truth = SCORES.filter((score) => score >= threshold).length;
      return truth < lowest || truth > highest;
    };
    const thresholds = Array.from({ length: 9_999 }, (_, index) => index + 1);

    expect(thresholds.filter(isWrong)).toEqual([]);
  });

  it("stays where something and not everything can match", () => {
    expect([0, 50, 8_000, 10_000].map(onScale)).toEqual([50, 50, 8_000, 9_950]);
  });

  it("is told in words", () => {
    expect(wouldMatchInWords({ lowest: 7, highest: 7, scored: 1_100 })).toBe(
      "Would have matched 7 of 1,100",
    );
    expect(wouldMatchInWords({ lowest: 3, highest: 7, scored: 11 })).toBe(
      "Would have matched between 3 and 7 of 11",
    );
  });
});

describe("scores of the past", () => {
  it("are those of one version, over all of its days", () => {
    const tally = tallyOf([rollup(1, [100]), rollup(2, [100, 250]), rollup(2, [260])], 2);

    expect(tally.scoreCounts.slice(0, 4)).toEqual([0, 1, 2, 0]);
    expect(tally).toMatchObject({ matches: 2, noMatches: 1, failures: 4, skipped: 6 });
  });

  it("are none where nothing was judged", () => {
    expect(tallyOf([], 1).scoreCounts).toEqual(new Array(BINS).fill(0));
  });

  it("stand below the threshold, above it, or on both sides", () => {
    expect(sideOf(79, 8_000)).toBe("below");
    expect(sideOf(80, 8_000)).toBe("above");
    expect([79, 80, 81].map((bin) => sideOf(bin, 8_050))).toEqual(["below", "cut", "above"]);
  });

  it("are drawn so that one is seen beside ten thousand", () => {
    expect(heights([10_000, 1, 0])).toEqual([1, 0.01, 0]);
    expect(heights([0, 0])).toEqual([0, 0]);
  });
});
