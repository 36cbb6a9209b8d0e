import createClient from "openapi-fetch";
import { describe, expect, it, vi } from "vitest";
import type { Api } from "./client";
import { type Explanation, unreachable } from "./failure";
import { readRefusingPolicies } from "./refusing";
import type { paths } from "./schema";

const ID = `pol_${"a".repeat(32)}`;
const OTHER_ID = `pol_${"b".repeat(32)}`;
const NAMED = { id: ID, name: "Card numbers" };
const NO_PAUSES = [0, 0];

/** An Admin client that gets these answers one after the other, and the last one again. */
function admin(...answers: readonly (readonly [number, unknown])[]) {
  const reached = vi.fn(async (_: Request) => {
    const [status, body] = answers[Math.min(reached.mock.calls.length, answers.length) - 1] ?? [];
    return Response.json(body, { status: status ?? 500 });
  });
  const api: Api = createClient<paths>({ baseUrl: "http://gateway.example", fetch: reached });
  return { api, reached };
}

function failed(code: string, message = "Refused."): Explanation {
  return { ...unreachable().explanation, status: 403, code, message, requestId: "r1" };
}

function refused(code: string): unknown {
  return { error: { code, message: "m", type: "t", param: null, request_id: "r", doc_url: null } };
}

const read = (api: Api, explanation: Explanation) =>
  readRefusingPolicies(api, explanation, new AbortController().signal, NO_PAUSES);

describe("policies that refused a request", () => {
  it("are those of the message, by the names that can be read", async () => {
    const { api } = admin([200, NAMED], [404, refused("policy_not_found")]);

    const found = await read(api, failed("policy_violation", `By ${ID}, ${OTHER_ID}.`));

    expect(found).toEqual([NAMED]);
  });

  it("are those of the record where the message names none, once it is written", async () => {
    const blocked_by = ["request", "response"].map((direction) => ({ ...NAMED, direction }));
    const { api, reached } = admin(
      [404, refused("request_not_found")],
      [200, { blocked_by: [] }],
      [200, { blocked_by }],
    );

    const found = await read(api, failed("policy_not_evaluable"));

    expect(found).toEqual([NAMED]);
    expect(reached.mock.calls.map(([{ url }]) => new URL(url).pathname)).toEqual(
      Array(3).fill("/manage/v1/organization/requests/r1"),
    );
  });

  it("stay unknown if the record never comes", async () => {
    const { api, reached } = admin([404, refused("request_not_found")]);

    expect(await read(api, failed("policy_not_evaluable"))).toEqual([]);
    expect(reached).toHaveBeenCalledTimes(NO_PAUSES.length + 1);
  });

  it("are not asked for again by a key that may not read records", async () => {
    const { api, reached } = admin([403, refused("insufficient_permissions")]);

    expect(await read(api, failed("policy_not_evaluable"))).toEqual([]);
    expect(reached).toHaveBeenCalledTimes(1);
  });

  it("are not looked up for other failures", async () => {
    const { api, reached } = admin([500, null]);

    expect(await read(api, failed("backend_error", ID))).toEqual([]);
    expect(reached).not.toHaveBeenCalled();
  });
});
