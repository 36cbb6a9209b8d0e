/** The filters of the list, as the address holds them and as the API is asked. */

import type { Instant } from "../../base/days";

export const STATUSES = ["all", "2xx", "4xx", "5xx"] as const;

export interface Wanted {
  readonly status: (typeof STATUSES)[number];
  readonly project: string;
  readonly key: string;
  readonly model: string;
  readonly code: string;
  readonly policy: string;
  /** As a field of the browser holds it, taken as UTC: 2026-11-17T09:30. */
  readonly from: string;
  readonly to: string;
}

/** The instant in a field; null if it is empty or holds none. */
export function instantIn(field: string): Instant | null {
  const milliseconds = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/.test(field) ? Date.parse(`${field}Z`) : NaN;
  return Number.isNaN(milliseconds) ? null : Math.floor(milliseconds / 1000);
}

export interface Query {
  status?: string;
  project_id?: string;
  api_key_id?: string;
  model?: string;
  error_code?: string;
  policy_id?: string;
  start_time?: number;
  end_time?: number;
}

export function queryOf(wanted: Wanted): Query {
  const { status, project, key, model, code, policy } = wanted;
  const start = instantIn(wanted.from);
  const end = instantIn(wanted.to);
  return {
    ...(status === "all" ? {} : { status }),
    ...(project === "" ? {} : { project_id: project }),
    ...(key === "" ? {} : { api_key_id: key }),
    ...(model === "" ? {} : { model }),
    ...(code === "" ? {} : { error_code: code }),
    ...(policy === "" ? {} : { policy_id: policy }),
    ...(start === null ? {} : { start_time: start }),
    ...(end === null ? {} : { end_time: end }),
  };
}
