/** The filters of the list, as the address holds them and as the API is asked. */

import { HOUR_SECONDS, type Instant } from "../../base/days";

export const OUTCOMES = ["all", "succeeded", "failed", "refused", "client_error"] as const;

export const RANGES = [
  { value: "24h", title: "24 hours" },
  { value: "7d", title: "7 days" },
  { value: "30d", title: "30 days" },
  { value: "custom", title: "From … to" },
] as const;

export type Range = (typeof RANGES)[number]["value"];

const HOURS = { "24h": 24, "7d": 7 * 24, "30d": 30 * 24 } as const;

export interface Wanted {
  readonly outcome: (typeof OUTCOMES)[number];
  readonly range: Range;
  readonly project: string;
  readonly key: string;
  readonly model: string;
  readonly code: string;
  readonly policy: string;
  /** As a field of the browser holds it, taken as UTC: 2026-11-17T09:30. */
  readonly from: string;
  readonly to: string;
}

export type Want = (name: keyof Wanted, value: string) => void;

/** Those besides the range and the outcome. */
export const FILTERS = ["project", "key", "model", "code", "policy"] as const;

/** Where a range of whole hours begins, the present one included: reports count those. */
export function startOf(range: Exclude<Range, "custom">, now: Instant): Instant {
  return now - (now % HOUR_SECONDS) - (HOURS[range] - 1) * HOUR_SECONDS;
}

/** The instant in a field; null if it is empty or holds none. */
export function instantIn(field: string): Instant | null {
  const milliseconds = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/.test(field) ? Date.parse(`${field}Z`) : NaN;
  return Number.isNaN(milliseconds) ? null : Math.floor(milliseconds / 1000);
}

export interface Query {
  outcome?: Exclude<Wanted["outcome"], "all">;
  project_id?: string;
  api_key_id?: string;
  model?: string;
  error_code?: string;
  policy_id?: string;
  start_time?: number;
  end_time?: number;
}

export function queryOf(wanted: Wanted, now: Instant): Query {
  const { outcome, range, project, key, model, code, policy } = wanted;
  const start = range === "custom" ? instantIn(wanted.from) : startOf(range, now);
  const end = range === "custom" ? instantIn(wanted.to) : null;
  return {
    ...(outcome === "all" ? {} : { outcome }),
    ...(project === "" ? {} : { project_id: project }),
    ...(key === "" ? {} : { api_key_id: key }),
    ...(model === "" ? {} : { model }),
    ...(code === "" ? {} : { error_code: code }),
    ...(policy === "" ? {} : { policy_id: policy }),
    ...(start === null ? {} : { start_time: start }),
    ...(end === null ? {} : { end_time: end }),
  };
}
