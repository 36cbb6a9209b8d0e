import type { Page } from "playwright-core";
import { describe, expect, inject, it } from "vitest";
import { enter } from "./visitor";

/** Focus begins at the page's heading, so the figures come before the navigation. */
const FOCUSABLE_MAX = 80;

/** How many places of the grid of figures hold nothing. */
async function emptyPlaces(page: Page): Promise<number> {
  return page.locator(".figures").evaluate((grid) => {
    const columns = getComputedStyle(grid).gridTemplateColumns.split(" ").length;
    return (columns - (grid.children.length % columns)) % columns;
  });
}

describe("the overview", () => {
  it("shows what is left, held, spent and capped", async () => {
    const visitor = await enter();
    const { page } = visitor;

    await page.getByRole("region", { name: "Available credit" }).getByText("$399.25").waitFor();
    await page.getByRole("region", { name: "Held" }).getByText("$0.50").first().waitFor();
    await page.getByRole("region", { name: "Spent today" }).getByText("$").waitFor();
    await page
      .getByRole("region", { name: "Tokens" })
      .getByText(/^[1-9]\d+$/)
      .waitFor();
    await page.getByRole("banner").getByText("Example Ltd").waitFor();
    expect(await emptyPlaces(page)).toBe(0);
    await page.getByRole("region", { name: "Spending caps" }).getByText("Shop").waitFor();
    const matches = page.getByRole("region", { name: "Policy matches" });
    await matches.getByText(/^Today, and [\d,]{5,} in 30 days$/).waitFor();

    await visitor.isContent();
    await visitor.leave();
  });

  it("leads from each figure to what it counts, in the chosen range", async () => {
    const visitor = await enter();
    const { page } = visitor;
    await page.getByRole("radio", { name: "7 days" }).check();
    const failed = page.getByRole("region", { name: "Failed requests" });
    await failed.getByRole("link", { name: /refused/ }).waitFor();

    const figures = page.locator(".figure");
    await expect.poll(() => figures.getByRole("link").count()).toBe((await figures.count()) + 2);
    const count = await failed.locator(".value").innerText();
    await failed.getByRole("link", { name: `Failed requests ${count}` }).click();

    await page.getByRole("radio", { name: `Failed ${count}`, checked: true }).waitFor();
    await page.getByRole("radio", { name: "7 days", checked: true }).waitFor();
    await expect
      .poll(() => page.getByRole("row", { name: /Failed by/ }).count())
      .toBe(Number(count));
    await visitor.leave();
  });

  it("explains what the key may not see, and shows the rest", async () => {
    const visitor = await enter({ key: inject("told").narrow_key });
    const { page } = visitor;

    const spent = page.getByRole("region", { name: "Spent today" });
    await spent.getByText("Your Admin key lacks the permission billing:read").waitFor();
    const caps = page.getByRole("region", { name: "Spending caps" });
    await caps.getByText("spending_limits:read").waitFor();

    await visitor.isContent();
    await visitor.leave();
  });

  it("can be walked with the keyboard alone", async () => {
    const visitor = await enter();
    const { page } = visitor;
    await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());

    await page.keyboard.press("Tab");
    await page.getByText("Skip to the page").waitFor();
    const names: string[] = [];
    for (let step = 0; step < FOCUSABLE_MAX && !names.includes("Sign out"); step++) {
      await page.keyboard.press("Tab");
      names.push(await page.evaluate(() => document.activeElement?.textContent ?? ""));
    }

    expect(names).toContain("Costs");
    expect(names).toContain("Sign out");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Shortcuts" }).waitFor();
    await visitor.isContent();
    await page.keyboard.press("Escape");
    await page.keyboard.press("/");
    await expect
      .poll(() => page.getByLabel("Request ID").evaluate((one) => one === document.activeElement))
      .toBe(true);
    await visitor.leave();
  });
});
