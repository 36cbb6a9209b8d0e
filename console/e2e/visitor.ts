/** Somebody in front of a browser, who notices whatever a page does that it must not do. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type axe from "axe-core";
import { type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { expect, inject } from "vitest";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const CHROMIUM = "/usr/bin/chromium-headless-shell";
const PATIENCE_MS = 30_000;

/** The browser says this of every refusal; whether one was due is for the test to say. */
const REFUSED = /^Failed to load resource: the server responded with a status of [45]\d\d/;

declare global {
  interface Window {
    axe: typeof axe;
    violations: string[];
  }
}

export interface Visitor {
  readonly page: Page;
  /** What the page did that it must not do. */
  readonly faults: string[];
  go(title: string): Promise<void>;
  /** Nothing has gone wrong until now, and everything can be used by everybody. */
  isContent(): Promise<void>;
  leave(): Promise<void>;
}

/** One for all files of tests, which share a process; it ends with that. */
export const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ["--no-sandbox"],
});

/** Another gateway than the usual one has another address. */
type ArrivalOptions = BrowserContextOptions & { readonly baseUrl?: string };

/** Before the door, on an empty page. */
export async function arrive({
  baseUrl = inject("told").base_url,
  ...options
}: ArrivalOptions = {}): Promise<Visitor> {
  // A colour that is still changing has another contrast.
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const faults = watch(page, new URL(baseUrl).origin);
  return {
    page,
    faults,
    go: async (title) => {
      await page.getByRole("navigation").getByRole("link", { name: title, exact: true }).click();
      const heading = page.getByRole("heading", { name: title, level: 1 });
      await heading.waitFor().catch(async (failure: Error) => {
        throw new Error(`${failure.message}\n${await page.locator("body").innerText()}`);
      });
    },
    isContent: async () => {
      await page.waitForFunction(() => !document.querySelector('.waiting, [aria-busy="true"]'));
      expect(await violations(page)).toEqual([]);
      expect(await obstacles(page)).toEqual([]);
      expect(await overflowing(page)).toEqual([]);
      expect(faults).toEqual([]);
    },
    leave: () => context.close(),
  };
}

/** Behind the door, at the overview. */
export async function enter(options: ArrivalOptions & { key?: string } = {}): Promise<Visitor> {
  const { key = inject("told").admin_key, baseUrl = inject("told").base_url, ...rest } = options;
  const visitor = await arrive({ baseUrl, ...rest });
  await visitor.page.goto(`${baseUrl}/console`);
  await visitor.page.getByLabel("Admin API key").fill(key);
  await visitor.page.getByRole("button", { name: "Sign in" }).click();
  await visitor.page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  return visitor;
}

function watch(page: Page, origin: string): string[] {
  const faults: string[] = [];
  page.on("request", (request) => {
    const url = new URL(request.url());
    const isOwn = url.origin === origin || ["blob:", "data:"].includes(url.protocol);
    if (!isOwn) faults.push(`a request to ${url.origin}`);
  });
  page.on("pageerror", (error) => faults.push(`an error: ${error.message}`));
  page.on("console", (message) => {
    const isFault = ["error", "warning"].includes(message.type());
    if (isFault && !REFUSED.test(message.text())) faults.push(message.text());
  });
  page.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => {
      window.violations.push(`${event.violatedDirective} by ${event.blockedURI}`);
    });
  });
  return faults;
}

async function violations(page: Page): Promise<string[]> {
  return page.evaluate(() => window.violations);
}

/** What is wider than the window or than its card: nobody sees its end. */
async function overflowing(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const isCut = (element: Element) => element.closest(".scroll, .unseen, .clipped, svg") !== null;
    const wide = [...document.querySelectorAll(".panel, .figure, dialog[open]")].flatMap((card) => {
      const end = card.getBoundingClientRect().right;
      return [...card.querySelectorAll("*")].filter(
        (inner) => inner.getBoundingClientRect().right > end + 1 && !isCut(inner),
      );
    });
    const beyond = document.documentElement.scrollWidth > innerWidth ? ["the window"] : [];
    return [...beyond, ...wide.map((element) => element.outerHTML.slice(0, 120))];
  });
}

/** What stands in the way of people who cannot see or point, by axe. */
async function obstacles(page: Page): Promise<string[]> {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  const results = await page.evaluate(() =>
    window.axe.run(document, { resultTypes: ["violations"] }),
  );
  return results.violations.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.target.join(" ")}`),
  );
}
