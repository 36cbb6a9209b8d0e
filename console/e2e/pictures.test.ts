/** Pictures of every page, for whoever wants to look at them: only where a folder is named. */

import { join } from "node:path";
import { afterAll, beforeAll, describe, inject, it } from "vitest";
import { enter, type Visitor, withBrowser } from "./visitor";

const { TOLLHOUSE_PICTURES: FOLDER } = process.env;
const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 360, height: 740 };
const SECTIONS = [
  "Overview",
  "Costs",
  "Requests",
  "Policies",
  "Projects and keys",
  "Limits and caps",
  "Models",
  "Playground",
] as const;

describe.skipIf(FOLDER === undefined).each([
  ["light", { colorScheme: "light" as const, viewport: WIDE }],
  ["dark", { colorScheme: "dark" as const, viewport: WIDE }],
  ["narrow", { colorScheme: "light" as const, viewport: NARROW }],
  ["narrow-dark", { colorScheme: "dark" as const, viewport: NARROW }],
])("pictures, %s", (look, options) => {
  const browser = withBrowser();
  let visitor: Visitor;

  beforeAll(async () => {
    visitor = await enter(browser(), options);
  });
  afterAll(() => visitor?.leave());

  const show = async (title: string) => {
    const menu = visitor.page.getByRole("button", { name: "Menu" });
    if (await menu.isVisible()) await menu.click();
    await visitor.go(title);
  };

  const shoot = async (name: string) => {
    await visitor.isContent();
    const path = join(FOLDER ?? "", `${name}-${look}.png`);
    await visitor.page.screenshot({ path, fullPage: true, animations: "disabled" });
  };

  it.each(SECTIONS)("of %s", async (title) => {
    await show(title);
    await shoot(title.toLowerCase().replaceAll(" ", "-"));
  });

  it("of a policy", async () => {
    await show("Policies");
    const { page } = visitor;
    await page.getByRole("link", { name: "Card numbers" }).click();
    await page.getByLabel("Rule").fill("Does it contain a card number or bad words?");
    await page.getByText("Name what is meant").waitFor();
    await page.getByLabel("Text", { exact: true }).fill("Charge it to my card, please.");
    await page.getByRole("button", { name: "Judge it" }).click();
    await page.getByRole("region", { name: "By what is published" }).waitFor();
    await page.getByRole("slider").fill("7250");
    await shoot("policy");
  });

  it("of a request that failed", async () => {
    await show("Requests");
    await visitor.page.getByLabel("Request ID").fill(inject("told").failed_request_id);
    await visitor.page.keyboard.press("Enter");
    await shoot("request");
  });
});
