/** Entries of the audit log in words. */

import type { Names } from "../../api/names";
import type { AuditChange, AuditEntry } from "../../api/types";
import { shown } from "../../base/money";

const NOUNS: Readonly<Record<string, string>> = {
  admin_api_key: "Admin key",
  console_session: "console session",
  credit_entry: "credit",
  organization: "organization",
  organization_check: "check",
  policy: "policy",
  project: "project",
  project_api_key: "project key",
  rate_limit: "rate limit",
  reservation: "request",
  spending_limit: "spending cap",
};

const VERBS: Readonly<Record<string, string>> = {
  active: "Resumed",
  archive: "Archived",
  clear: "Removed",
  closed: "Closed",
  create: "Created",
  delete: "Deleted",
  edit: "Changed",
  end_previous: "Ended the previous value of",
  grant: "Granted",
  narrow: "Narrowed",
  pause: "Paused",
  publish: "Published",
  resume: "Resumed",
  revoke: "Revoked",
  roll_back: "Rolled back",
  rotate: "Rotated",
  set: "Set",
  suspend: "Suspended",
  suspended: "Suspended",
};

/** Actions that are not a verb on their resource. */
const ACTIONS: Readonly<Record<string, string>> = {
  "ledger.backfill": "Entered past usage",
  "session.create": "Signed in to the console",
  "session.end": "Signed out of the console",
};

export function noun(type: string): string {
  return NOUNS[type] ?? type.replaceAll("_", " ");
}

/** "Created project key"; an action that is newer than the console is shown as it is. */
export function actionInWords({ action, resource }: AuditEntry): string {
  if (action in ACTIONS) return ACTIONS[action] ?? action;
  const verb = VERBS[action.slice(action.lastIndexOf(".") + 1)];
  return verb === undefined ? action : `${verb} ${noun(resource.type)}`;
}

const SUFFIXES: Readonly<Record<string, string>> = {
  day: ", each day",
  week: ", each week",
  month: ", each month",
  lifetime: ", all time",
  operator: ", by the operator",
  organization: "",
};

/** What a cap or a limit bounds. Its ID holds the scope, the scope's ID and the period or owner. */
export function limitInWords(id: string, names: Names): string {
  const [scope = "", scopeId = "", last = ""] = id.split(":");
  const suffix = SUFFIXES[last] ?? `, ${last}`;
  if (scope === "project") return names.project(scopeId) + suffix;
  if (scope === "api_key") return names.key(scopeId) + suffix;
  return `Organization${suffix}`;
}

const AMOUNT_FIELD = /_pico_usd$/;
const INSTANT_FIELD = /_at$/;

/** The value of a changed field: amounts as money, long texts by their length alone. */
export function valueInWords(field: string, value: AuditChange["after"]): string {
  if (value === null) return "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.join(", ");
  if (typeof value === "object") return `a text of ${value.length} characters`;
  if (AMOUNT_FIELD.test(field) && /^-?\d+$/.test(String(value))) return shown(BigInt(value));
  if (INSTANT_FIELD.test(field)) return String(value).replace("T", " ").slice(0, 19);
  return String(value);
}

/** "match_threshold_basis_points" is "match threshold basis points". */
export function fieldInWords(field: string): string {
  return field.replace(AMOUNT_FIELD, "").replaceAll("_", " ").replaceAll(".", " ");
}
