import { describe, expect, inject, it } from "vitest";
import { arrive, enter, withBrowser } from "./visitor";

const browser = withBrowser();

describe("the door", () => {
  it("opens to an Admin key", async () => {
    const visitor = await enter(browser());

    await visitor.isContent();
    await visitor.leave();
  });

  it.each([
    ["word", "The gateway does not know this key."],
    ["tha_é", "This is not a key"],
  ])("stays closed to %s", async (key, reason) => {
    const visitor = await arrive(browser());
    await visitor.page.goto(`${inject("told").base_url}/console`);

    await visitor.page.getByLabel("Admin API key").fill(key);
    await visitor.page.keyboard.press("Enter");

    await visitor.page.getByRole("alert").getByText(reason).waitFor();
    await visitor.isContent();
    await visitor.leave();
  });

  it("tells a project key what it is", async () => {
    const visitor = await arrive(browser());
    await visitor.page.goto(`${inject("told").base_url}/console`);

    await visitor.page.getByLabel("Admin API key").fill(inject("told").project_key);
    await visitor.page.keyboard.press("Enter");

    await visitor.page.getByText("This is a project key.").waitFor();
    await visitor.leave();
  });

  it("leads to the page that was asked for", async () => {
    const visitor = await arrive(browser());
    await visitor.page.goto(`${inject("told").base_url}/console/nothing/here`);
    await visitor.page.getByLabel("Admin API key").fill(inject("told").admin_key);
    await visitor.page.keyboard.press("Enter");

    await visitor.page.getByRole("heading", { name: "No such page" }).waitFor();
    await visitor.leave();
  });

  it("keeps the key in memory and nowhere else", async () => {
    const visitor = await enter(browser());
    const { page } = visitor;
    const key = inject("told").admin_key;

    const kept = await page.evaluate(() =>
      JSON.stringify([
        { ...localStorage },
        { ...sessionStorage },
        document.cookie,
        window.location.href,
        window.history.state,
        document.documentElement.outerHTML,
      ]),
    );
    const databases = await page.evaluate(() => indexedDB.databases());
    await page.reload();

    expect(kept).not.toContain(key);
    expect(databases).toEqual([]);
    await page.getByLabel("Admin API key").waitFor();
    expect(await page.getByLabel("Admin API key").inputValue()).toBe("");
    await visitor.leave();
  });

  it("closes behind whoever signs out", async () => {
    const visitor = await enter(browser());

    await visitor.page.getByRole("button", { name: "Sign out" }).click();

    await visitor.page.getByLabel("Admin API key").waitFor();
    await visitor.leave();
  });
});
