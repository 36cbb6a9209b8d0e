/** The values of a policy in words. */

import type { PolicyDraft, PolicyState } from "../../api/types";

export const DIRECTIONS: Readonly<Record<PolicyDraft["direction"], string>> = {
  request: "Requests",
  response: "Responses",
  both: "Requests and responses",
};

export const SCOPES: Readonly<Record<PolicyDraft["scope"], string>> = {
  organization: "Every project",
  projects: "Chosen projects",
  unattached: "Only where a request names it",
};

export const MODES: Readonly<Record<PolicyDraft["mode"], string>> = {
  monitoring: "Monitoring: matches are recorded",
  enforcing: "Enforcing: matches are refused",
};

export const STATE_TONES: Readonly<Record<PolicyState, "plain" | "good" | "warn">> = {
  draft: "plain",
  monitoring: "plain",
  enforcing: "good",
  paused: "warn",
};

/** 8000 basis points are 80 %; nothing is what the gateway takes for it. */
export function thresholdInWords(basisPoints: number | null): string {
  return basisPoints === null ? "The gateway's default" : `${basisPoints / 100} %`;
}
