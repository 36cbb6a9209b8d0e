/** The console without a pointer: Tab, Enter, Space, arrows, and what is typed. */

import type { Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { arrive, type Visitor } from "./visitor";

const STEPS_MAX = 150;

let visitor: Visitor;

beforeAll(async () => {
  visitor = await arrive();
});
afterAll(() => visitor.leave());

async function press(wanted: Locator, key: "Enter" | "Space" = "Enter") {
  await reach(wanted);
  await visitor.page.keyboard.press(key);
}

async function type(label: string, text: string) {
  await reach(visitor.page.getByLabel(label, { exact: true }));
  await visitor.page.keyboard.type(text);
}

/** Move by arrows until this option is chosen. */
async function choose(group: Locator, wanted: Locator, key: "ArrowDown" | "ArrowRight") {
  await reach(group);
  for (let steps = 0; !(await isChosen(wanted)); steps += 1) {
    if (steps === STEPS_MAX) throw new Error(`no arrow leads to ${wanted}`);
    await visitor.page.keyboard.press(key);
  }
}

function isChosen(wanted: Locator): Promise<boolean> {
  return wanted.evaluate((each: HTMLInputElement | HTMLOptionElement) =>
    each instanceof HTMLOptionElement ? each.selected : each.checked,
  );
}

async function reach(wanted: Locator) {
  await wanted.waitFor();
  for (let steps = 0; !(await hasFocus(wanted)); steps += 1) {
    if (steps === STEPS_MAX) throw new Error(`no Tab leads to ${wanted}`);
    await visitor.page.keyboard.press("Tab");
  }
  expect(await wanted.evaluate(seen), `the focus on ${wanted} is seen`).toEqual([true, true]);
}

function hasFocus(wanted: Locator): Promise<boolean> {
  return wanted.evaluate((element) => element === document.activeElement);
}

/** Whether the focus is outlined, and within the window. What is chosen has its outline beside it. */
function seen(element: Element): [boolean, boolean] {
  const outlines = [element, element.nextElementSibling ?? element].map(
    (each) => getComputedStyle(each).outlineStyle,
  );
  const { top, bottom } = element.getBoundingClientRect();
  return [outlines.some((style) => style !== "none"), bottom > 0 && top < innerHeight];
}

async function arriveAt(title: string) {
  const heading = visitor.page.getByRole("heading", { name: title, level: 1 });
  await heading.waitFor();
  expect(await hasFocus(heading), `the heading ${title} has the focus`).toBe(true);
  await visitor.isContent();
}

async function go(title: string) {
  const menu = visitor.page.getByRole("navigation", { name: "Pages" });
  await press(menu.getByRole("link", { name: title, exact: true }));
  await arriveAt(title);
}

describe("by the keyboard alone", () => {
  it("one signs in", async () => {
    await visitor.page.goto(`${inject("told").base_url}/console`);

    await type("Admin API key", inject("told").admin_key);
    await visitor.page.keyboard.press("Enter");

    await arriveAt("Overview");
  });

  it("one skips the menu", async () => {
    await press(visitor.page.getByRole("link", { name: "Skip to the page" }));

    await visitor.page.keyboard.press("Tab");

    expect(await visitor.page.locator("main :focus").count()).toBe(1);
  });

  it("one creates a project", async () => {
    await go("Projects and keys");
    await press(visitor.page.getByRole("button", { name: "New project" }));

    await type("Name", "Night desk");
    await visitor.page.keyboard.press("Enter");

    await arriveAt("Night desk");
  });

  it("one creates a key with a cap", async () => {
    const { page } = visitor;
    const open = page.getByRole("button", { name: "New key" });
    await press(open, "Space");
    await type("Name", "Late");
    await type("Spending cap in USD (optional)", "25");
    await press(page.getByRole("button", { name: "Create key" }), "Space");

    expect(await page.getByRole("textbox", { name: "Key" }).inputValue()).toMatch(/^thp_/);
    await press(page.getByRole("button", { name: "I have copied it" }));

    await page.getByRole("row", { name: /Late.*active never \$0.00 \$25.00/ }).waitFor();
    expect(await hasFocus(open), "the focus is where it was before the dialog").toBe(true);
    await visitor.isContent();
  });

  it("one publishes a policy for that project", async () => {
    const { page } = visitor;
    await go("Policies");
    await press(page.getByRole("link", { name: "New policy" }));
    await type("Name", "Opening hours");
    await type("Rule", "Does the text give opening hours?");
    const scope = page.getByLabel("Scope");
    await choose(scope, scope.getByRole("option", { name: "Chosen projects" }), "ArrowDown");
    await press(page.getByLabel("Night desk"), "Space");
    await press(page.getByRole("button", { name: "Save as draft" }));
    await arriveAt("Opening hours");

    await press(page.getByRole("button", { name: "Publish" }));
    await press(page.getByRole("dialog").getByRole("button", { name: "Publish" }));

    await page.getByRole("heading", { name: "Published: version 1" }).waitFor();
    await visitor.isContent();
  });

  it("one sees why a request was refused", async () => {
    const { page } = visitor;
    await go("Requests");
    const all = page.getByRole("radio", { name: /^All/ });
    await choose(all, page.getByRole("radio", { name: "Refused" }), "ArrowRight");
    const row = page.getByRole("row", { name: /403 .* Refused by Card numbers/ }).first();
    await press(row.getByRole("rowheader").getByRole("link"));

    await page.getByRole("region", { name: "Refused by policy" }).waitFor();
    await visitor.isContent();
  });
});
