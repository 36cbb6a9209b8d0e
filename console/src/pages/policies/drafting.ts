/** A draft while it is being written, and what becomes of it when somebody else was faster. */

import type {
  CreatePolicy,
  EditManagedPolicy,
  GivenPolicy,
  Policy,
  TryUnsavedRule,
} from "../../api/types";

/** The fields as a person edits them. The threshold is a percentage, empty for the default. */
export interface Draft {
  readonly name: string;
  readonly description: string;
  readonly rule: string;
  readonly direction: Policy["draft"]["direction"];
  readonly endsEarly: boolean;
  readonly mode: Policy["draft"]["mode"];
  readonly scope: Policy["draft"]["scope"];
  readonly projectIds: readonly string[];
  readonly threshold: string;
}

export type FieldName = keyof Draft;

export const FIELDS: readonly FieldName[] = [
  "name",
  "description",
  "rule",
  "direction",
  "endsEarly",
  "mode",
  "scope",
  "projectIds",
  "threshold",
];

/** What the gateway calls a field. */
const SENT = {
  name: "name",
  description: "description",
  rule: "rule",
  direction: "direction",
  endsEarly: "ends_answer_early",
  mode: "mode",
  scope: "scope",
  projectIds: "project_ids",
  threshold: "match_threshold_basis_points",
} as const satisfies Record<FieldName, keyof EditManagedPolicy>;

export const NEW_DRAFT: Draft = {
  name: "",
  description: "",
  rule: "",
  direction: "both",
  endsEarly: false,
  mode: "monitoring",
  scope: "organization",
  projectIds: [],
  threshold: "",
};

export function draftOf({ name, description, draft }: Policy): Draft {
  return {
    name,
    description,
    rule: draft.rule,
    direction: draft.direction,
    endsEarly: draft.ends_answer_early,
    mode: draft.mode,
    scope: draft.scope,
    projectIds: draft.project_ids,
    threshold: percentOf(draft.match_threshold_basis_points),
  };
}

/** 8050 basis points are "80.5". */
export function percentOf(basisPoints: number | null): string {
  return basisPoints === null ? "" : String(basisPoints / 100);
}

/** Null is the default; undefined is no threshold at all. */
export function basisPointsOf(percent: string): number | null | undefined {
  const text = percent.trim();
  if (text === "") return null;
  if (!/^\d{1,2}(\.\d{1,2})?$/.test(text)) return undefined;
  const [whole = "0", fraction = ""] = text.split(".");
  const basisPoints = Number(whole) * 100 + Number(fraction.padEnd(2, "0"));
  return basisPoints === 0 ? undefined : basisPoints;
}

/** What keeps a draft from being saved, by field. */
export function faultsOf(draft: Draft): Partial<Record<FieldName, string>> {
  const faults: Partial<Record<FieldName, string>> = {};
  if (draft.name.trim() === "") faults.name = "A policy needs a name.";
  if (!draft.rule.endsWith("?")) {
    faults.rule = "Enter a yes-or-no question that ends with a question mark.";
  }
  if (draft.endsEarly && !judgesAnswers(draft)) {
    faults.endsEarly = "Only a policy that evaluates responses can end them.";
  }
  if (basisPointsOf(draft.threshold) === undefined) {
    faults.threshold = "Enter a percentage from 0.01 to 99.99, or leave it empty.";
  }
  return faults;
}

export function judgesAnswers({ direction }: Pick<Draft, "direction">): boolean {
  return direction !== "request";
}

/** Where no answer is judged none can be ended. */
export function judging(draft: Draft, direction: Draft["direction"]): Draft {
  return { ...draft, direction, endsEarly: draft.endsEarly && judgesAnswers({ direction }) };
}

export function isSame(one: Draft, other: Draft): boolean {
  return changedFields(one, other).length === 0;
}

export function changedFields(before: Draft, after: Draft): FieldName[] {
  return FIELDS.filter((field) => String(before[field]) !== String(after[field]));
}

/** The body of a creation, which cannot say that answers end early. */
export function creationOf(draft: Draft): CreatePolicy {
  return {
    name: draft.name,
    description: draft.description,
    rule: draft.rule,
    direction: draft.direction,
    mode: draft.mode,
    scope: draft.scope,
    project_ids: [...draft.projectIds],
    match_threshold_basis_points: basisPointsOf(draft.threshold) ?? null,
  };
}

/** What a test uses of a draft that is not saved. */
export function triedOf(draft: Draft): Omit<TryUnsavedRule, "text"> {
  const { rule, direction, threshold } = draft;
  return { rule, direction, match_threshold_basis_points: basisPointsOf(threshold) ?? null };
}

/** The body of an edit: only what was changed, so that nothing else can be overwritten. */
export function editOf(before: Draft, after: Draft, revision: number): EditManagedPolicy {
  const all = { ...creationOf(after), ends_answer_early: after.endsEarly };
  const changed = changedFields(before, after).map((field) => [SENT[field], all[SENT[field]]]);
  return { revision, ...Object.fromEntries(changed) };
}

/**
 * The policy after a pause, whose answer does not say whether answers end early: the revision that
 * was named shows that all else is as it was.
 */
export function whenPaused(known: Policy, paused: GivenPolicy): Policy {
  const { state, revision, updated_at } = paused;
  return { ...known, state, revision, updated_at };
}

/** One field that both have changed, or only the other one. */
export interface Difference {
  readonly field: FieldName;
  readonly before: Draft[FieldName];
  readonly theirs: Draft[FieldName];
  /** Null where it was left alone here. */
  readonly mine: Draft[FieldName] | null;
}

/** What the other one has changed, field by field, beside what was changed here. */
export function differences(before: Draft, theirs: Draft, mine: Draft): Difference[] {
  const changedHere = new Set(changedFields(before, mine));
  return changedFields(before, theirs).map((field) => ({
    field,
    before: before[field],
    theirs: theirs[field],
    mine: changedHere.has(field) ? mine[field] : null,
  }));
}

/** The other one's draft with the changes that were made here on top. */
export function onTop(before: Draft, theirs: Draft, mine: Draft): Draft {
  const kept = changedFields(before, mine).map((field) => [field, mine[field]]);
  return { ...theirs, ...Object.fromEntries(kept) };
}
