/** A cost report turned from days into groups. */

import type { Names } from "../../api/names";
import type { CostBucket } from "../../api/types";
import { csv } from "../../base/csv";
import { dayOf, type Instant, isoDay } from "../../base/days";
import { decimalOf, type PicoUsd, picoOf, sum } from "../../base/money";

export type Grouping = "project" | "key" | "model" | "line_item";

type CostResult = CostBucket["results"][number];

/** `id` is empty for what the report could not assign. */
export interface Group {
  readonly id: string;
  readonly name: string;
  readonly detail: string;
  readonly amounts: readonly PicoUsd[];
  readonly total: PicoUsd;
}

export interface Breakdown {
  readonly days: readonly Instant[];
  /** The most expensive one first. */
  readonly groups: readonly Group[];
  readonly total: PicoUsd;
}

/**
 * What the API is asked to group by. Keys come with their projects, which say whose they are.
 * A line item is a part of a model's price, so that line items sum up to models.
 */
export const DIMENSIONS = {
  project: ["project_id"],
  key: ["project_id", "api_key_id"],
  model: ["line_item"],
  line_item: ["line_item"],
} as const;

export function breakdown(buckets: readonly CostBucket[], by: Grouping, names: Names): Breakdown {
  const amounts = new Map<string, { sample: CostResult; days: PicoUsd[] }>();
  buckets.forEach(({ results }, index) => {
    for (const result of results) {
      const id = idOf(result, by);
      const found = amounts.get(id) ?? { sample: result, days: buckets.map(() => 0n) };
      found.days[index] = (found.days[index] ?? 0n) + picoOf(result.amount.value);
      amounts.set(id, found);
    }
  });
  const groups = [...amounts].map(([id, { sample, days }]) => ({
    id,
    ...wordsFor(sample, by, names),
    amounts: days,
    total: sum(days),
  }));
  groups.sort((one, other) => compare(other.total, one.total) || compare(one.name, other.name));
  return {
    days: buckets.map(({ start_time }) => dayOf(start_time)),
    groups,
    total: sum(groups.map(({ total }) => total)),
  };
}

/** "example/large, cached input" belongs to "example/large". */
export function modelOf(lineItem: string): string {
  const end = lineItem.lastIndexOf(", ");
  return end === -1 ? lineItem : lineItem.slice(0, end);
}

function idOf(result: CostResult, by: Grouping): string {
  if (by === "model") return modelOf(result.line_item ?? "");
  if (by === "line_item") return result.line_item ?? "";
  return (by === "project" ? result.project_id : result.api_key_id) ?? "";
}

function wordsFor(
  { line_item, project_id, api_key_id }: CostResult,
  by: Grouping,
  names: Names,
): { name: string; detail: string } {
  const project = project_id === null ? "" : names.project(project_id);
  if (by === "model") return { name: modelOf(line_item ?? ""), detail: "" };
  if (by === "line_item") return { name: line_item ?? "", detail: "" };
  if (by === "project") return { name: project, detail: "" };
  return { name: api_key_id === null ? "" : names.key(api_key_id), detail: project };
}

/** Order ascending. */
export function compare<T extends bigint | string>(one: T, other: T): number {
  return one < other ? -1 : Number(one > other);
}

/** So many groups can be told apart by colour; the rest becomes one. */
export function gathered(groups: readonly Group[], shownMax: number): readonly Group[] {
  if (groups.length <= shownMax) return groups;
  const rest = groups.slice(shownMax - 1);
  const days = rest[0]?.amounts ?? [];
  return [
    ...groups.slice(0, shownMax - 1),
    {
      id: "",
      name: `${rest.length} others`,
      detail: "",
      amounts: days.map((_, index) => sum(rest.map(({ amounts }) => amounts[index] ?? 0n))),
      total: sum(rest.map(({ total }) => total)),
    },
  ];
}

/** One row for each group and day that cost something, exact. */
export function costsAsCsv({ days, groups }: Breakdown, by: Grouping): string {
  const rows = groups.flatMap(({ id, name, amounts }) =>
    days.flatMap((day, index) => {
      const amount = amounts[index] ?? 0n;
      return amount === 0n ? [] : [[isoDay(day), id, name, decimalOf(amount)]];
    }),
  );
  return csv(["day", `${by}_id`, by, "amount_usd"], rows);
}
