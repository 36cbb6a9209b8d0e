import { describe, expect, it } from "vitest";
import { PAGE_SIZE, PAGES_MAX, walkList, walkReport } from "./walking";

describe("walking", () => {
  it("reads a list to its end", async () => {
    const asked: unknown[] = [];
    const walked = await walkList(async (query) => {
      asked.push(query);
      return query.after === undefined
        ? { data: ["a", "b"], has_more: true, last_id: "b" }
        : { data: ["c"], has_more: false, last_id: "c" };
    });

    expect(walked).toEqual({ items: ["a", "b", "c"], isCut: false });
    expect(asked).toEqual([{ limit: PAGE_SIZE }, { limit: PAGE_SIZE, after: "b" }]);
  });

  it("stops somewhere, and says so", async () => {
    const walked = await walkList(async () => ({ data: ["a"], has_more: true, last_id: "a" }));

    expect(walked.items).toHaveLength(PAGES_MAX);
    expect(walked.isCut).toBe(true);
  });

  it("reads a report to its end", async () => {
    const buckets = await walkReport(async ({ page }) =>
      page === undefined ? { data: [1, 2], next_page: "p" } : { data: [3], next_page: null },
    );

    expect(buckets).toEqual([1, 2, 3]);
  });

  it("never shows a part of a report as the whole", async () => {
    const endless = walkReport(async () => ({ data: [1], next_page: "p" }));

    await expect(endless).rejects.toThrow(RangeError);
  });
});
