import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { enter, type Visitor } from "./visitor";

let visitor: Visitor;

beforeAll(async () => {
  visitor = await enter();
});
afterAll(() => visitor.leave());

describe("costs", () => {
  it("are drawn by day and listed by project", async () => {
    const { page } = visitor;
    await visitor.go("Costs");

    await page
      .getByRole("img", { name: /^Costs by day/ })
      .locator("canvas")
      .waitFor();
    await page.getByRole("row", { name: /Shop/ }).waitFor();
    await page.getByRole("row", { name: /Search/ }).waitFor();
    await page.getByText("1 request has no final cost yet").waitFor();
    await visitor.isContent();
  });

  it("tell the amounts of a day to whoever points at it", async () => {
    const { page } = visitor;

    await page.locator("canvas").hover({ position: { x: 300, y: 150 } });

    await page.locator(".reading").getByText("Total").waitFor();
    await visitor.isContent();
  });

  it("are told apart by key and by line item", async () => {
    const { page } = visitor;

    await page.getByRole("radio", { name: "By key" }).check();
    await page.getByRole("row", { name: /Nightly report Shop/ }).waitFor();
    await page.getByRole("radio", { name: "By line item" }).check();
    await page.getByRole("row", { name: /example\/large, input/ }).waitFor();

    await visitor.isContent();
  });

  it("are told apart by model, with requests and tokens", async () => {
    const { page } = visitor;

    await page.getByRole("radio", { name: "By model" }).check();
    await page.getByRole("columnheader", { name: "Cached input" }).waitFor();
    await page.getByRole("row", { name: /example\/large( [\d,]{2,}){4} \d+\.\d % \$/ }).waitFor();
    await page.getByRole("row", { name: /example\/small/ }).waitFor();
    await visitor.isContent();

    await page.getByRole("radio", { name: "By line item" }).check();
  });

  it("keep range and grouping in the address", async () => {
    const { page } = visitor;

    await page.getByRole("radio", { name: "7 days", exact: true }).check();

    const { searchParams } = new URL(page.url());
    expect(Object.fromEntries(searchParams)).toEqual({ by: "line_item", range: "7d" });
  });

  it("equal what the API says, to the last digit, as CSV", async () => {
    const { page } = visitor;
    await page.getByRole("radio", { name: "By project" }).check();
    await visitor.isContent();

    const started = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download CSV" }).click();
    const saved = await started;
    const text = readFileSync(await saved.path(), "utf8");
    const [head, ...rows] = text.trimEnd().split("\r\n");

    expect(saved.suggestedFilename()).toMatch(/^costs-by-project-\d{4}-\d\d-\d\d-.*\.csv$/);
    expect(head).toBe("day,project_id,project,amount_usd");
    expect(new Set(rows)).toEqual(new Set(await reported()));
  });

  it("equal the report in the format FOCUS, too", async () => {
    const { page } = visitor;

    const started = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export FOCUS" }).click();
    const saved = await started;
    const text = readFileSync(await saved.path(), "utf8");
    const [head, ...rows] = text.trimEnd().split("\r\n");

    expect(saved.suggestedFilename()).toMatch(/^focus-costs-\d{4}-\d\d-\d\d-.*\.csv$/);
    expect(head?.split(",")[0]).toBe("BilledCost");
    expect(rows.length).toBeGreaterThanOrEqual((await reported()).length);
  });

  it("can be asked for between two days, and say that there were none", async () => {
    const { page } = visitor;
    await page.getByRole("radio", { name: "From … to" }).check();
    await page.getByText("Choose two days").waitFor();

    await page.getByRole("textbox", { name: "From" }).fill("2020-01-01");
    await page.getByRole("textbox", { name: "To" }).fill("2020-01-31");

    await page.getByText("Nothing was settled from 1 Jan 2020 to 31 Jan 2020.").waitFor();
    await visitor.isContent();
  });
});

/** The last seven days of projects, as the CSV has them. */
async function reported(): Promise<string[]> {
  const { base_url, admin_key, project_id } = inject("told");
  const today = Math.floor(Date.now() / 86_400_000) * 86_400;
  const query = new URLSearchParams({
    start_time: String(today - 6 * 86_400),
    group_by: "project_id",
    limit: "7",
  });
  const answer = await fetch(`${base_url}/v1/organization/costs?${query}`, {
    headers: { authorization: `Bearer ${admin_key}` },
  });
  const page = (await answer.json()) as Page;
  return page.data.flatMap(({ start_time, results }) =>
    results.map(({ amount, project_id: id }) => {
      const day = new Date(start_time * 1000).toISOString().slice(0, 10);
      return [day, id, id === project_id ? "Shop" : "Search", amount.value].join(",");
    }),
  );
}

interface Page {
  readonly data: ReadonlyArray<{
    readonly start_time: number;
    readonly results: ReadonlyArray<{ amount: { value: string }; project_id: string }>;
  }>;
}
