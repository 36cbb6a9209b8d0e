/** What to change so that a refused request is let through, and where. */

import type { RequestRecord } from "../../api/types";
import type { Place } from "../../base/places";
import { Link } from "../../ui/navigation";

interface Advice {
  readonly sentence: string;
  readonly link: string;
  readonly to: Place;
}

export function Remedy({ record }: { record: RequestRecord }) {
  const advice = adviceOn(record);
  if (advice === null) return null;
  return (
    <p className="notice">
      <span>
        {advice.sentence} <Link to={advice.to}>{advice.link}</Link>
      </span>
    </p>
  );
}

/** Null where the organization can change nothing, or nothing was refused. */
export function adviceOn({
  outcome,
  error_code,
  blocked_by,
  project_id,
}: RequestRecord): Advice | null {
  const project = { page: "project", id: project_id } as const;
  const [policy] = blocked_by;
  if (outcome !== "refused") return null;
  switch (error_code) {
    case "credit_balance_exhausted":
      return {
        sentence:
          "The credit did not cover the most that this request could cost: add credit, or send a smaller output bound.",
        link: "See the credit",
        to: { page: "credit" },
      };
    case "api_key_spend_limit_exceeded":
    case "project_spend_limit_exceeded":
    case "organization_spend_limit_exceeded":
      return {
        sentence: `The spending cap of the ${CAPPED[error_code]} left too little for the most that this request could cost: raise the cap, or wait for its next period.`,
        link: "See the caps",
        to: { page: "limits" },
      };
    case "policy_violation":
    case "policy_not_evaluable":
      return {
        sentence:
          "A policy stopped it: if it should have passed, change the policy’s rule or raise its threshold.",
        link: policy === undefined ? "See the policies" : `Open ${policy.name}`,
        to: policy === undefined ? { page: "policies" } : { page: "policy", id: policy.id },
      };
    case "policy_rate_limit_exceeded":
      return {
        sentence:
          "The judge had no room left in this minute: send less at once, or let fewer policies judge.",
        link: "See the policies",
        to: { page: "policies" },
      };
    case "rate_limit_exceeded":
    case "concurrency_limit_exceeded":
      return {
        sentence:
          "A rate limit was reached: raise the limit, or let the caller wait as Retry-After says.",
        link: "See the limits",
        to: { page: "limits" },
      };
    case "key_suspended":
      return { sentence: "The key is suspended: resume it.", link: "See the keys", to: project };
    case "insufficient_permissions":
      return {
        sentence: "The key lacks a permission, which cannot be added: create a key that has it.",
        link: "Create a key",
        to: project,
      };
    case "project_archived":
      return {
        sentence: "The project is archived: use a key of another project.",
        link: "See the projects",
        to: { page: "projects" },
      };
    case "model_locked":
      return {
        sentence: "The model needs a check that the operator has not granted: use another model.",
        link: "See the models",
        to: { page: "models" },
      };
    case "reservation_too_large":
      return {
        sentence: "The request could cost more than any request may: send a smaller output bound.",
        link: "See the models’ prices",
        to: { page: "models" },
      };
    default:
      return null;
  }
}

const CAPPED = {
  api_key_spend_limit_exceeded: "key",
  project_spend_limit_exceeded: "project",
  organization_spend_limit_exceeded: "organization",
} as const;
