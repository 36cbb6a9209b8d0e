/** Pictures of every page, for the guide and for whoever looks: only where a folder is named. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { enter, type Visitor } from "./visitor";

const { TOLLHOUSE_PICTURES: FOLDER = "" } = process.env;
const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 360, height: 740 };
const QUALITY = 60;
const HEIGHT_MAX = 1000;
const SECTIONS = [
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

/** The page as WebP, which the browser can and the library cannot. Long lists are cut. */
async function picture(page: Page, heightMax: number): Promise<Buffer> {
  const session = await page.context().newCDPSession(page);
  const { cssContentSize: whole } = await session.send("Page.getLayoutMetrics");
  const { data } = await session.send("Page.captureScreenshot", {
    format: "webp",
    quality: QUALITY,
    captureBeyondViewport: true,
    clip: { x: 0, y: 0, width: whole.width, height: Math.min(whole.height, heightMax), scale: 1 },
  });
  await session.detach();
  return Buffer.from(data, "base64");
}

/** One exchange, whose cost is known. */
async function converse(page: Page): Promise<void> {
  await page.getByLabel("Message").fill("Say hello.");
  await page.keyboard.press("Enter");
  await page.getByRole("log").getByText("$").waitFor();
}

/** Somebody is told about caps; at the second time this changes nothing. */
async function subscribe(): Promise<void> {
  const { admin_key: key, base_url: baseUrl } = inject("told");
  const answer = await fetch(`${baseUrl}/manage/v1/organization/alert_subscriptions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "idempotency-key": "of the pictures",
    },
    body: JSON.stringify({
      name: "Finance",
      url: "https://alerts.example.com/tollhouse",
      cap_percents: [50, 80],
      unsettled_requests: 100,
    }),
  });
  expect(answer.ok).toBe(true);
}

describe.skipIf(FOLDER === "").each([
  ["light", "", { colorScheme: "light" as const, viewport: WIDE }],
  ["dark", "-dark", { colorScheme: "dark" as const, viewport: WIDE }],
  ["narrow", "-narrow", { colorScheme: "light" as const, viewport: NARROW }],
  ["narrow and dark", "-narrow-dark", { colorScheme: "dark" as const, viewport: NARROW }],
])("pictures, %s", (_, ending, options) => {
  let visitor: Visitor;

  beforeAll(async () => {
    await subscribe();
    visitor = await enter(options);
  });
  afterAll(() => visitor.leave());

  const show = async (title: string) => {
    const menu = visitor.page.getByRole("button", { name: "Menu" });
    if (await menu.isVisible()) await menu.click();
    await visitor.go(title);
  };

  const shoot = async (name: string, heightMax = HEIGHT_MAX) => {
    await visitor.isContent();
    await visitor.page.evaluate(() => scrollTo(0, 0));
    await writeFile(join(FOLDER, `${name}${ending}.webp`), await picture(visitor.page, heightMax));
  };

  it.each(SECTIONS)("of %s", async (title) => {
    await show(title);
    const ask = visitor.page.getByRole("textbox", { name: "Project key" });
    if (await ask.isVisible()) {
      await ask.fill(inject("told").project_key);
      await visitor.page.getByRole("button", { name: "Use this key" }).click();
      await ask.waitFor({ state: "detached" });
    }
    if (title === "Playground") await converse(visitor.page);
    await shoot(title.toLowerCase().replaceAll(" ", "-"));
  });

  it("of costs by model", async () => {
    await show("Costs");
    await visitor.page.getByRole("radio", { name: "By model" }).check();
    await visitor.page.getByRole("columnheader", { name: "Requests" }).waitFor({
      state: "attached",
    });
    await shoot("costs-by-model");
  });

  it("of a new Admin key", async () => {
    const { page } = visitor;
    await show("Admin keys");
    await page.getByRole("button", { name: "New Admin key" }).click();
    await page.getByLabel("Name").fill("Accounting");
    await page.getByLabel("Permissions", { exact: true }).selectOption("Read costs and credit");
    await shoot("new-admin-key");
    await page.getByRole("button", { name: "Cancel" }).click();
  });

  it("of a policy", async () => {
    const { page } = visitor;
    await show("Policies");
    await page.getByRole("link", { name: "Card numbers" }).click();
    await page.getByLabel("Rule").fill("Does it contain a card number or bad words?");
    await page.getByText("Name what is meant").waitFor();
    await page.getByLabel("Text", { exact: true }).fill("Charge it to my card, please.");
    await page.getByRole("button", { name: "Judge it" }).click();
    await page.getByRole("region", { name: "By the published version" }).waitFor();
    await page.getByRole("slider").fill("8650");
    await shoot("policy", Number.POSITIVE_INFINITY);
  });

  it("of a request that failed", async () => {
    await show("Requests");
    await visitor.page.getByLabel("Request ID").fill(inject("told").failed_request_id);
    await visitor.page.keyboard.press("Enter");
    await shoot("request");
  });
});
