import { describe, expect, it } from "vitest";
import type { Policy } from "../../api/types";
import {
  basisPointsOf,
  type Draft,
  differences,
  draftOf,
  editOf,
  faultsOf,
  isSame,
  judging,
  NEW_DRAFT,
  onTop,
  percentOf,
  whenPaused,
} from "./drafting";

const BEFORE: Draft = { ...NEW_DRAFT, name: "No names", rule: "Does it name a person?" };

describe("a threshold", () => {
  it.each([
    ["", null],
    ["50", 5000],
    ["80.5", 8050],
    ["0.01", 1],
    ["99.99", 9999],
    ["0", undefined],
    ["100", undefined],
    ["12.345", undefined],
    ["half", undefined],
  ])("is read from %j", (text, expected) => {
    expect(basisPointsOf(text)).toBe(expected);
  });

  it.each([1, 5000, 8050, 9999])(
    "of %d basis points is written so that it is read again",
    (points) => {
      expect(basisPointsOf(percentOf(points))).toBe(points);
    },
  );
});

describe("a draft", () => {
  it("says what is wrong with it", () => {
    expect(faultsOf(BEFORE)).toEqual({});
    expect(Object.keys(faultsOf({ ...NEW_DRAFT, rule: "No names.", threshold: "all" }))).toEqual([
      "name",
      "rule",
      "threshold",
    ]);
  });

  it("is saved by what was changed in it, and by nothing else", () => {
    const after = { ...BEFORE, mode: "enforcing", threshold: "80", projectIds: ["p1"] } as const;

    expect(editOf(BEFORE, after, 7)).toEqual({
      revision: 7,
      mode: "enforcing",
      project_ids: ["p1"],
      match_threshold_basis_points: 8000,
    });
  });

  it("restores the default threshold by null", () => {
    expect(editOf({ ...BEFORE, threshold: "80" }, BEFORE, 7)).toEqual({
      revision: 7,
      match_threshold_basis_points: null,
    });
  });
});

describe("ending answers early", () => {
  const early: Draft = { ...BEFORE, endsEarly: true };

  it("is an edit like any other, by the name that the gateway has for it", () => {
    expect(editOf(BEFORE, early, 7)).toEqual({ revision: 7, ends_answer_early: true });
    expect(editOf(early, BEFORE, 7)).toEqual({ revision: 7, ends_answer_early: false });
  });

  it("goes with the answers that are judged", () => {
    expect(judging(early, "response").endsEarly).toBe(true);
    expect(judging(early, "request").endsEarly).toBe(false);
    expect(judging(BEFORE, "both").endsEarly).toBe(false);
  });

  it("is a fault where two edits leave it without answers", () => {
    const merged = onTop(BEFORE, judging(BEFORE, "request"), early);

    expect(Object.keys(faultsOf(merged))).toEqual(["endsEarly"]);
    expect(faultsOf(early)).toEqual({});
  });

  it("shows where somebody else has changed it", () => {
    expect(differences(BEFORE, early, BEFORE)).toEqual([
      { field: "endsEarly", before: false, theirs: true, mine: null },
    ]);
  });

  it("outlives a pause, whose answer does not tell of it", () => {
    const paused = whenPaused(policy("enforcing", 7), policy("paused", 8));

    expect(draftOf(paused).endsEarly).toBe(true);
    expect([paused.state, paused.revision, paused.updated_at]).toEqual(["paused", 8, 8]);
  });
});

function policy(state: Policy["state"], revision: number): Policy {
  return {
    object: "organization.policy",
    id: "policy_1",
    name: "No names",
    description: "",
    state,
    revision,
    has_unpublished_changes: true,
    created_at: 1,
    updated_at: revision,
    draft: {
      rule: "Does it name a person?",
      direction: "both",
      mode: "enforcing",
      scope: "organization",
      project_ids: [],
      match_threshold_basis_points: null,
      base_version: 1,
      ends_answer_early: state !== "paused",
    },
    current_version: 1,
    published: null,
  };
}

describe("two people at one draft", () => {
  const theirs: Draft = { ...BEFORE, name: "Names", mode: "enforcing" };
  const mine: Draft = { ...BEFORE, name: "No full names", description: "Mine" };

  it("see what the other has changed, and where they meet", () => {
    expect(differences(BEFORE, theirs, mine)).toEqual([
      { field: "name", before: "No names", theirs: "Names", mine: "No full names" },
      { field: "mode", before: "monitoring", theirs: "enforcing", mine: null },
    ]);
  });

  it("lose nothing when one lays the changes on top", () => {
    expect(onTop(BEFORE, theirs, mine)).toEqual({
      ...BEFORE,
      name: "No full names",
      description: "Mine",
      mode: "enforcing",
    });
  });

  it("have nothing to settle when they wrote the same", () => {
    expect(isSame(onTop(BEFORE, theirs, theirs), theirs)).toBe(true);
  });
});
