/** The values of a policy in words. */

import type { PolicyDecision, PolicyDraft, PolicyState, PolicyVerdict } from "../../api/types";

export const DIRECTIONS: Readonly<Record<PolicyDraft["direction"], string>> = {
  request: "Requests",
  response: "Responses",
  both: "Requests and responses",
};

export const JUDGED: Readonly<Record<PolicyDecision["direction"], string>> = {
  request: "Request",
  response: "Response",
};

export const SCOPES: Readonly<Record<PolicyDraft["scope"], string>> = {
  organization: "Every project",
  projects: "Chosen projects",
  unattached: "Only requests that name it",
};

export const MODES: Readonly<Record<PolicyDraft["mode"], string>> = {
  monitoring: "Monitoring: matches are recorded",
  enforcing: "Enforcing: a match refuses the request",
};

export const STATE_TONES: Readonly<Record<PolicyState, "plain" | "good" | "warn">> = {
  draft: "plain",
  monitoring: "plain",
  enforcing: "good",
  paused: "warn",
};

type Tone = "plain" | "good" | "warn" | "bad";

export const OUTCOMES: Readonly<Record<PolicyVerdict["outcome"], { tone: Tone; words: string }>> = {
  match: { tone: "warn", words: "match" },
  no_match: { tone: "good", words: "no match" },
  failed: { tone: "bad", words: "not judged" },
};

/** What became of it, by whether it counted for the caller. */
export function actionInWords(decision: PolicyDecision): { tone: Tone; words: string } {
  if (decision.action === "blocked") return { tone: "bad", words: "refused" };
  if (decision.action === "would_block") return { tone: "warn", words: "recorded" };
  return { tone: "plain", words: "let through" };
}

const FAILURES: Readonly<Record<string, string>> = {
  unreachable: "the judge could not be reached",
  timed_out: "the judge took too long",
  rejected: "the judge refused the question",
  garbled: "the judge’s answer could not be parsed",
  unseen: "the judge said neither yes nor no",
  uncovered: "yes and no were improbable in the judge’s answer",
  undecided: "the score may be on either side of the threshold",
  not_evaluable: "it contains something other than text",
  over_budget: "it is too long to be judged",
};

const UNKNOWN_RULE =
  "the demonstration judge knows only some kinds of question; name a model in [judge] of tollhouse.toml to judge this rule";

/**
 * Why there is no verdict; a reason that is newer than the console is told as it is.
 * The demonstration judge says neither yes nor no to a rule that it does not know.
 */
export function failureInWords(reason: string | null, isDemonstration: boolean): string {
  if (isDemonstration && reason === "unseen") return UNKNOWN_RULE;
  return reason === null ? "there was no verdict" : (FAILURES[reason] ?? reason);
}

export function yesOrNo(is: boolean): string {
  return is ? "Yes" : "No";
}

export function inPercent(basisPoints: number): string {
  return `${basisPoints / 100} %`;
}

/** 8000 basis points are 80 %; nothing is what the gateway takes for it. */
export function thresholdInWords(basisPoints: number | null): string {
  return basisPoints === null ? "The gateway's default" : inPercent(basisPoints);
}
