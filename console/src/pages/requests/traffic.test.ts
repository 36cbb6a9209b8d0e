import { describe, expect, it } from "vitest";
import type { RequestRollupBucket } from "../../api/types";
import { codesIn, trafficIn } from "./traffic";

const RESULT = {
  object: "organization.requests.result" as const,
  requests: 10,
  failed: 2,
  refused: 3,
  client_errors: 1,
  failures: [
    { status: 429, error_code: "rate_limit_exceeded", requests: 3 },
    { status: 502, error_code: null, requests: 2 },
    { status: 400, error_code: "invalid_type", requests: 1 },
  ],
  input_tokens: 100,
  cached_input_tokens: 20,
  output_tokens: 3,
  mean_total_ms: 1,
  latency_counts: [],
  project_id: null,
  api_key_id: null,
  model: null,
} satisfies RequestRollupBucket["results"][number];
const HOUR = { object: "bucket", start_time: 0, end_time: 3600 } as const;
const QUIET = { ...HOUR, results: [] };
const BUSY = { ...HOUR, results: [RESULT, RESULT] };

describe("traffic", () => {
  it("counts every request once, by how it ended", () => {
    expect(trafficIn(QUIET, BUSY)).toEqual({
      requests: 20,
      succeeded: 8,
      failed: 4,
      refused: 6,
      clientErrors: 2,
      tokens: 246,
    });
  });

  it("has the codes of its errors, each once", () => {
    expect(codesIn([QUIET, BUSY])).toEqual(["invalid_type", "rate_limit_exceeded"]);
  });
});
