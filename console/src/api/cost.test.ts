import createClient from "openapi-fetch";
import { describe, expect, it, vi } from "vitest";
import type { Api } from "./client";
import { readCost } from "./cost";
import type { paths } from "./schema";

const RECORD = { id: "r1", cost: { value: "0.000035", currency: "usd" } };
const MISSING = [404, { error: { code: "request_not_found", message: "m" } }] as const;

/** An Admin client that gets these answers one after the other, and the last one again. */
function admin(...answers: readonly (readonly [number, unknown])[]) {
  const reached = vi.fn(async (_: Request) => {
    const [status, body] = answers[Math.min(reached.mock.calls.length, answers.length) - 1] ?? [];
    return Response.json(body, { status: status ?? 500 });
  });
  const api: Api = createClient<paths>({ baseUrl: "http://gateway.example", fetch: reached });
  return { api, reached };
}

const read = (api: Api, signal = new AbortController().signal) =>
  readCost(api, "r1", signal, [0, 0]);

describe("the cost of a request", () => {
  it("is read once it is recorded", async () => {
    const { api, reached } = admin(MISSING, [200, RECORD]);

    expect(await read(api)).toBe("0.000035");
    expect(reached).toHaveBeenCalledTimes(2);
  });

  it("is not known where the end of the request is not", async () => {
    const { api } = admin([200, { ...RECORD, cost: null }]);

    expect(await read(api)).toBeNull();
  });

  it("is not asked for forever", async () => {
    const { api, reached } = admin(MISSING);

    expect(await read(api)).toBeNull();
    expect(reached).toHaveBeenCalledTimes(3);
  });

  it("is not asked for again by a key that may not read it, or once it is not wanted", async () => {
    const denied = admin([403, { error: { code: "insufficient_permissions", message: "m" } }]);
    const missing = admin(MISSING);

    expect(await read(denied.api)).toBeNull();
    expect(await read(missing.api, AbortSignal.abort())).toBeNull();
    expect(denied.reached).toHaveBeenCalledTimes(1);
    expect(missing.reached.mock.calls.length).toBeLessThanOrEqual(1);
  });
});
