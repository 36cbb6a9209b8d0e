import { afterAll, beforeAll, describe, inject, it } from "vitest";
import { enter, type Visitor } from "./visitor";

const PAGES = [
  "Overview",
  "Costs",
  "Credit",
  "Requests",
  "Policies",
  "Projects and keys",
  "Limits and caps",
  "Alerts",
  "Models",
  "Playground",
  "Admin keys",
  "Audit log",
] as const;

describe.each([
  ["wide", { viewport: { width: 1440, height: 900 } }],
  ["narrow", { viewport: { width: 390, height: 844 } }],
  ["very narrow", { viewport: { width: 360, height: 740 } }],
])("every page, %s, in the light and in the dark", (_, options) => {
  let visitor: Visitor;

  beforeAll(async () => {
    visitor = await enter(options);
  });
  afterAll(() => visitor.leave());

  const show = async (title: string) => {
    const menu = visitor.page.getByRole("button", { name: "Menu" });
    if (await menu.isVisible()) await menu.click();
    await visitor.go(title);
  };

  const isContentInBoth = async () => {
    for (const colorScheme of ["light", "dark"] as const) {
      await visitor.page.emulateMedia({ colorScheme });
      await visitor.isContent();
    }
  };

  it.each(PAGES)("can be read and used: %s", async (title) => {
    const { page } = visitor;
    await show(title);
    const ask = page.getByRole("textbox", { name: "Project key" });
    if (await ask.isVisible()) {
      await ask.fill(inject("told").project_key);
      await page.getByRole("button", { name: "Use this key" }).click();
    }

    await isContentInBoth();
  });

  it("can be read and used: a policy with advice, a trial, scores and decisions", async () => {
    const { page } = visitor;
    await show("Policies");
    await page.getByRole("link", { name: "Card numbers" }).click();
    await page.getByLabel("Rule").fill("Does it contain a card number, a bad word or the like?");
    await page.getByText("Name what is meant").waitFor();
    await page.getByLabel("Text", { exact: true }).fill("It is 4929 1111 2222 3333.");
    await page.getByRole("button", { name: "Judge it" }).click();
    await page.getByRole("region", { name: "By the published version" }).waitFor();
    await page.getByRole("slider").press("PageDown");
    await page.getByText("Would have matched").waitFor();

    await isContentInBoth();
  });
});
