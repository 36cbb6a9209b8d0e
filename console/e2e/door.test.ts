import { describe, expect, inject, it } from "vitest";
import { arrive, enter } from "./visitor";

describe("the door", () => {
  it("opens to an Admin key", async () => {
    const visitor = await enter();

    await visitor.isContent();
    await visitor.leave();
  });

  it.each([
    ["word", "The gateway does not know this key."],
    ["tha_é", "This is not a key"],
  ])("stays closed to %s", async (key, reason) => {
    const visitor = await arrive();
    await visitor.page.goto(`${inject("told").base_url}/console`);

    await visitor.page.getByLabel("Admin API key").fill(key);
    await visitor.page.keyboard.press("Enter");

    await visitor.page.getByRole("alert").getByText(reason).waitFor();
    await visitor.isContent();
    await visitor.leave();
  });

  it("tells a project key what it is", async () => {
    const visitor = await arrive();
    await visitor.page.goto(`${inject("told").base_url}/console`);

    await visitor.page.getByLabel("Admin API key").fill(inject("told").project_key);
    await visitor.page.keyboard.press("Enter");

    await visitor.page.getByText("This is a project key.").waitFor();
    await visitor.leave();
  });

  it("leads to the page that was asked for", async () => {
    const visitor = await arrive();
    await visitor.page.goto(`${inject("told").base_url}/console/nothing/here`);
    await visitor.page.getByLabel("Admin API key").fill(inject("told").admin_key);
    await visitor.page.keyboard.press("Enter");

    await visitor.page.getByRole("heading", { name: "No such page" }).waitFor();
    await visitor.leave();
  });

  it("keeps the session over a reload, and the key nowhere", async () => {
    const visitor = await enter();
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
    const cookies = await page.context().cookies(`${inject("told").base_url}/console/session`);
    await page.reload();
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();

    expect(kept).not.toContain(key);
    expect(kept).not.toContain("ths_");
    expect(databases).toEqual([]);
    expect(cookies).toMatchObject([
      { httpOnly: true, sameSite: "Strict", path: "/console/session" },
    ]);
    expect(kept).not.toContain(cookies[0]?.value);
    expect(await page.context().cookies(`${inject("told").base_url}/v1`)).toEqual([]);
    await visitor.isContent();
    await visitor.leave();
  });

  it("closes behind whoever signs out", async () => {
    const visitor = await enter();

    await visitor.page.getByRole("button", { name: "Sign out" }).click();
    await visitor.page.getByLabel("Admin API key").waitFor();
    await visitor.page.reload();

    await visitor.page.getByLabel("Admin API key").waitFor();
    expect(await visitor.page.context().cookies()).toEqual([]);
    await visitor.leave();
  });

  it("renews a token that has expired, and asks again once the session has ended", async () => {
    const visitor = await enter();
    const { page } = visitor;
    let sent = 0;
    await page.route("**/manage/v1/**", async (route) => {
      sent += 1;
      const headers = { ...route.request().headers(), authorization: "Bearer ths_expired" };
      await route.continue(sent === 1 ? { headers } : {});
    });
    await visitor.go("Projects and keys");
    await visitor.isContent();
    expect(sent).toBeGreaterThan(1);

    await page.context().clearCookies();
    await page.unroute("**/manage/v1/**");
    await page.route("**/manage/v1/**", (route) =>
      route.continue({
        headers: { ...route.request().headers(), authorization: "Bearer ths_expired" },
      }),
    );
    await page.getByRole("navigation").getByRole("link", { name: "Credit", exact: true }).click();

    await page.getByRole("alert").getByText("Your session has ended. Sign in again.").waitFor();
    await visitor.leave();
  });
});
