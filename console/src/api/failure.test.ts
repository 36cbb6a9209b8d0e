import { describe, expect, it, vi } from "vitest";
import { asFailure, errorPage, failureOf, refusingPolicies, unreachable } from "./failure";

function answer(status: number, headers: Record<string, string> = {}): Response {
  return new Response(null, { status, headers });
}

describe("failures", () => {
  it("tell what the envelope tells", () => {
    const failure = failureOf(answer(409), {
      error: {
        code: "stale_revision",
        message: "Revision 3 is stale.",
        type: "invalid_request_error",
        param: "revision",
        request_id: "r1",
        doc_url: null,
      },
    });

    expect(failure.explanation).toEqual({
      status: 409,
      code: "stale_revision",
      message: "Revision 3 is stale.",
      param: "revision",
      requestId: "r1",
      missingPermission: null,
    });
  });

  it("name the permission that is missing", () => {
    const challenge = 'Bearer error="insufficient_scope", scope="policies:read"';
    const failure = failureOf(answer(403, { "www-authenticate": challenge }), "");

    expect(failure.explanation.missingPermission).toBe("policies:read");
  });

  it("of a policy tell which policies refused, and others tell none", () => {
    const [one, other] = [`pol_${"a".repeat(32)}`, `pol_${"0".repeat(32)}`];
    const message = `The request was refused by policy ${one}, ${other}. ${one} again.`;
    const { explanation } = unreachable();

    const refused = { ...explanation, code: "policy_violation", message };

    expect(refusingPolicies(refused)).toEqual([one, other]);
    expect(refusingPolicies({ ...refused, message: "Refused." })).toEqual([]);
    expect(refusingPolicies({ ...refused, code: "policy_not_found" })).toEqual([]);
  });

  it.each(["<html>Bad gateway</html>", null, { error: "no" }, { error: {} }])(
    "bear a body that is no envelope: %j",
    (body) => {
      const failure = failureOf(answer(502, { "x-request-id": "r2" }), body);

      expect(failure.explanation.code).toBe("unexpected_answer");
      expect(failure.explanation.requestId).toBe("r2");
    },
  );

  it("of the console itself are told apart and reported", () => {
    const reported: unknown[] = [];
    vi.stubGlobal("reportError", (thrown: unknown) => reported.push(thrown));
    const fault = new Error("a fault of ours");

    expect(asFailure(unreachable()).explanation.code).toBe("unreachable");
    expect(asFailure(fault).explanation.code).toBe("console_fault");
    expect(reported).toEqual([fault]);
    vi.unstubAllGlobals();
  });
});

describe("pages of errors", () => {
  it("exist for codes of the gateway alone", () => {
    const fromProxy = failureOf(answer(502), null).explanation.code;

    expect(errorPage("rate_limit_exceeded")).toBe("/docs/errors/rate_limit_exceeded");
    expect(errorPage(unreachable().explanation.code)).toBeNull();
    expect(errorPage(fromProxy)).toBeNull();
  });
});
