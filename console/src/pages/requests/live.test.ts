import { describe, expect, it } from "vitest";
import type { RequestRecord } from "../../api/types";
import { merged, nextStart, SHOWN_MAX } from "./live";

function record(number: number, status = 200): RequestRecord {
  const id = `id-${String(number).padStart(6, "0")}`;
  return { id, created_at: 1_000 + number, status } as RequestRecord;
}

describe("live requests", () => {
  it("are each listed once, newest first, as they were read last", () => {
    const rows = merged([record(3), record(1)], [record(2), record(1, 503)]);

    expect(rows.map(({ id, status }) => [id, status])).toEqual([
      ["id-000003", 200],
      ["id-000002", 200],
      ["id-000001", 503],
    ]);
  });

  it("do not grow without end", () => {
    const many = Array.from({ length: SHOWN_MAX + 5 }, (_, number) => record(number));

    const rows = merged([], many);

    expect(rows).toHaveLength(SHOWN_MAX);
    expect(rows[0]?.id).toBe(many.at(-1)?.id);
  });

  it("are read from a quarter of an hour before the newest on", () => {
    expect(nextStart([])).toBeNull();
    expect(nextStart([record(500), record(1)])).toBe(600);
    expect(nextStart([{ ...record(1), created_at: 5 }])).toBe(0);
  });
});
