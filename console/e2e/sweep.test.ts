import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { enter, type Visitor, withBrowser } from "./visitor";

const browser = withBrowser();
const PAGES = [
  "Overview",
  "Costs",
  "Requests",
  "Policies",
  "Projects and keys",
  "Limits and caps",
  "Models",
  "Playground",
] as const;

describe.each([
  ["in the dark", { colorScheme: "dark" as const }],
  ["on a narrow screen", { viewport: { width: 360, height: 740 } }],
])("every page, %s", (_, options) => {
  let visitor: Visitor;

  beforeAll(async () => {
    visitor = await enter(browser(), options);
  });
  afterAll(() => visitor.leave());

  it.each(PAGES)("can be read and used: %s", async (title) => {
    const { page } = visitor;
    const menu = page.getByRole("button", { name: "Menu" });
    if (await menu.isVisible()) await menu.click();
    await visitor.go(title);
    const ask = page.getByRole("textbox", { name: "Project key" });
    if (await ask.isVisible()) {
      await ask.fill(inject("told").project_key);
      await page.getByRole("button", { name: "Use this key" }).click();
    }

    await visitor.isContent();

    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(overflow).toBeLessThanOrEqual(0);
  });
});
