/** What the scores of the past say about a threshold. */

import type { PolicyRollup } from "../../api/types";
import { count } from "../../base/counts";

export const BINS = 100;
export const BASIS_POINTS_PER_BIN = 100;
export const BASIS_POINTS_MAX = 10_000;
/** How far one press of an arrow key moves a threshold. */
export const STEP_BASIS_POINTS = 50;

/** A threshold as a slider gives it: where nothing, or everything, would match there is none. */
export function onScale(basisPoints: number): number {
  return Math.min(Math.max(basisPoints, STEP_BASIS_POINTS), BASIS_POINTS_MAX - STEP_BASIS_POINTS);
}

/** How many decisions there were of each kind, and how many scores in each hundredth. */
export interface Tally {
  readonly matches: number;
  readonly noMatches: number;
  readonly failures: number;
  readonly skipped: number;
  readonly scoreCounts: readonly number[];
}

/** All days and directions of one version: scores of another question do not compare. */
export function tallyOf(rollups: readonly PolicyRollup[], version: number): Tally {
  const counted = rollups.filter((rollup) => rollup.version === version);
  const sum = (of: (rollup: PolicyRollup) => number) =>
    counted.reduce((total, rollup) => total + of(rollup), 0);
  return {
    matches: sum(({ matches }) => matches),
    noMatches: sum(({ no_matches }) => no_matches),
    failures: sum(({ failures }) => failures),
    skipped: sum(({ skipped }) => skipped),
    scoreCounts: Array.from({ length: BINS }, (_, bin) =>
      sum(({ score_counts }) => score_counts[bin] ?? 0),
    ),
  };
}

/** How many scores reach a threshold. One inside a hundredth cuts it: then only bounds are known. */
export interface WouldMatch {
  readonly lowest: number;
  readonly highest: number;
  readonly scored: number;
}

export function wouldMatch(scoreCounts: readonly number[], basisPoints: number): WouldMatch {
  const first = Math.floor(basisPoints / BASIS_POINTS_PER_BIN);
  const firstCertain = Math.ceil(basisPoints / BASIS_POINTS_PER_BIN);
  return {
    lowest: total(scoreCounts.slice(firstCertain)),
    highest: total(scoreCounts.slice(first)),
    scored: total(scoreCounts),
  };
}

function total(counts: readonly number[]): number {
  return counts.reduce((sum, each) => sum + each, 0);
}

export function wouldMatchInWords({ lowest, highest, scored }: WouldMatch): string {
  const matched =
    lowest === highest ? count(lowest) : `between ${count(lowest)} and ${count(highest)}`;
  return `Would have matched ${matched} of ${count(scored)}`;
}

/** How sure a bar of the histogram is of matching; a cut one holds scores on both sides. */
export type Side = "below" | "cut" | "above";

export function sideOf(bin: number, basisPoints: number): Side {
  const start = bin * BASIS_POINTS_PER_BIN;
  if (start >= basisPoints) return "above";
  return start + BASIS_POINTS_PER_BIN > basisPoints ? "cut" : "below";
}

/** Shares of the tallest bar, by square roots: few scores are seen beside very many. */
export function heights(scoreCounts: readonly number[]): number[] {
  const tallest = Math.max(...scoreCounts, 1);
  return scoreCounts.map((each) => Math.sqrt(each / tallest));
}
