import { describe, expect, it } from "vitest";
import { namesFrom } from "../../api/names";
import type { AuditEntry } from "../../api/types";
import { actionInWords, fieldInWords, limitInWords, valueInWords } from "./words";

const NAMES = namesFrom(
  new Map([["p1", "Shop"]]),
  new Map([["k1", { name: "Web", projectId: "p1" }]]),
);

function entry(action: string, type: string): AuditEntry {
  return {
    id: "1",
    object: "organization.audit_entry",
    occurred_at: 0,
    actor: { type: "operator", id: null, name: null },
    action,
    resource: { type, id: "2" },
    changes: [],
    digest_before: null,
    digest_after: null,
    request_id: null,
  };
}

describe("entries of the audit log", () => {
  it.each([
    ["project_api_key.create", "project_api_key", "Created project key"],
    ["admin_api_key.narrow", "admin_api_key", "Narrowed Admin key"],
    ["policy.roll_back", "policy", "Rolled back policy"],
    ["ledger.backfill", "reservation", "Entered past usage"],
    ["thing.frobnicate", "thing", "thing.frobnicate"],
  ])("say what was done by %s", (action, type, words) => {
    expect(actionInWords(entry(action, type))).toBe(words);
  });

  it.each([
    ["limit_pico_usd", "250000000000000", "$250.00"],
    ["name", "Shop", "Shop"],
    ["allowed_models", ["a", "b"], "a, b"],
    ["permissions", [], "none"],
    ["ends_answer_early", true, "yes"],
    ["expires_at", null, "none"],
    ["archived_at", "2026-11-14T09:30:00+00:00", "2026-11-14 09:30:00"],
    ["rule", { sha256: "x", length: 42 }, "a text of 42 characters"],
  ])("show a value of %s", (field, value, words) => {
    expect(valueInWords(field, value)).toBe(words);
  });

  it.each([
    ["organization:o:month", "Organization, each month"],
    ["project:p1:week", "Shop, each week"],
    ["project:p1:day", "Shop, each day"],
    ["project:p1:lifetime", "Shop, all time"],
    ["api_key:k1:organization", "Web"],
    ["organization:o:operator", "Organization, by the operator"],
  ])("say what the limit %s bounds", (id, words) => {
    expect(limitInWords(id, NAMES)).toBe(words);
  });

  it("name fields without their unit in the database", () => {
    expect(fieldInWords("limit_pico_usd")).toBe("limit");
    expect(fieldInWords("draft.match_threshold_basis_points")).toBe(
      "draft match threshold basis points",
    );
  });
});
