import type { Page } from "playwright-core";
import { describe, expect, inject, it } from "vitest";
import { arrive, enter, type Visitor } from "./visitor";

/** The pages of the provider are not ours to judge, and ask for fonts from elsewhere. */
async function beforeTheDoor(path = "/console"): Promise<Visitor> {
  const baseUrl = inject("told").people_base_url;
  const visitor = await arrive({ baseUrl });
  await visitor.page.route(/fonts\.googleapis\.com/, (route) => route.abort());
  await visitor.page.goto(baseUrl + path);
  return visitor;
}

async function nameThemselves(page: Page, name: string): Promise<void> {
  await page.getByRole("link", { name: "Sign in with your organization's account" }).click();
  await page.waitForURL(`${inject("told").issuer}/**`);
  await page.locator("input[name=login]").fill(name);
  await page.locator("input[name=password]").fill("any");
  await page.locator("button[type=submit]").click();
  await page.getByText("Authorize").first().waitFor();
  await page.locator("button[type=submit]").click();
  await page.waitForURL(`${inject("told").people_base_url}/console**`);
}

async function enterAs(name: string, path?: string): Promise<Visitor> {
  const visitor = await beforeTheDoor(path);
  await nameThemselves(visitor.page, name);
  return visitor;
}

function faultsOf({ faults }: Visitor): string[] {
  return faults.filter((fault) => !/127\.0\.0\.1|googleapis|ERR_FAILED/.test(fault));
}

describe("people", () => {
  it("see both ways to sign in", async () => {
    const visitor = await beforeTheDoor();

    await visitor.page.getByRole("link", { name: /organization's account/ }).waitFor();
    await visitor.page.getByLabel("Admin API key").waitFor();
    await visitor.isContent();
    const folder = process.env["TOLLHOUSE_PICTURES"];
    if (folder !== undefined) await visitor.page.screenshot({ path: `${folder}/sign-in.png` });
    await visitor.leave();
  });

  it("come back to the page that they asked for, and a reload keeps them", async () => {
    const visitor = await enterAs("alice", "/console/projects");
    const { page } = visitor;

    await page.getByRole("heading", { name: "Projects and keys", level: 1 }).waitFor();
    await page.getByText("Signed in as alice@example.com").waitFor();
    await page.reload();
    await page.getByText("Signed in as alice@example.com").waitFor();

    const protectedCookie = { httpOnly: true, sameSite: "Strict", path: "/console/session" };
    const cookies = await page.context().cookies(inject("told").people_base_url);
    const session = await page
      .context()
      .cookies(`${inject("told").people_base_url}/console/session`);
    expect(cookies.filter(({ name }) => name.startsWith("tollhouse"))).toEqual([]);
    expect(session.filter(({ name }) => name.startsWith("tollhouse"))).toMatchObject([
      { name: "tollhouse_session", ...protectedCookie },
      { name: "tollhouse_sign_out_hint", ...protectedCookie },
    ]);
    expect(page.url()).not.toContain("code=");
    expect(faultsOf(visitor)).toEqual([]);
    await visitor.leave();
  });

  it("act under their own names", async () => {
    const visitor = await enterAs("alice");
    const { page } = visitor;
    await visitor.go("Projects and keys");
    await page.getByRole("button", { name: "New project" }).click();
    await page.getByLabel("Name").fill("of a person");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText("of a person").first().waitFor();

    await visitor.go("Audit log");

    const row = page.getByRole("row").filter({ hasText: "Created project" }).first();
    await row.getByText("alice@example.com").waitFor();
    await visitor.leave();
  });

  it("choose between their organizations, where their groups may do different things", async () => {
    const visitor = await enterAs("bob");
    const { page } = visitor;
    const chooser = page.getByLabel("Organization");
    await chooser.waitFor();
    expect(await chooser.locator("option").allTextContents()).toEqual([
      "Example Ltd",
      "Second Ltd",
    ]);
    await chooser.selectOption({ label: "Second Ltd" });
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    await visitor.go("Projects and keys");
    await page.getByText("There is no project").first().waitFor();
    await page.reload();
    await page.getByText("There is no project").first().waitFor();
    expect(await chooser.locator("option:checked").textContent()).toBe("Second Ltd");
    const folder = process.env["TOLLHOUSE_PICTURES"];
    if (folder !== undefined) await page.screenshot({ path: `${folder}/organizations.png` });

    await visitor.go("Admin keys");
    await page.getByText("You lack the permission").waitFor();
    await visitor.leave();
  });

  it("see where they act, also if they may not read the organization", async () => {
    const visitor = await enterAs("dora", "/console/costs");

    await visitor.page.getByText("Total").first().waitFor();
    expect(await visitor.page.locator(".organization").textContent()).toBe("Example Ltd");
    await visitor.leave();
  });

  it("without a granted group stay outside, and are told why", async () => {
    const visitor = await enterAs("carol");

    await visitor.page.getByRole("alert").getByText("none of your groups").waitFor();
    await visitor.page.getByLabel("Admin API key").waitFor();
    await visitor.leave();
  });

  it("sign out here and at the provider", async () => {
    const visitor = await enterAs("alice");
    const { page } = visitor;
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(`${inject("told").issuer}/session/end**`);
    expect(new URL(page.url()).searchParams.get("id_token_hint")).toMatch(/^ey/);
    await page.locator("button[value=yes]").click();
    await page.waitForURL(`${inject("told").people_base_url}/console`);

    await page.getByRole("link", { name: /organization's account/ }).click();

    await page.locator("input[name=login]").waitFor();
    await visitor.leave();
  });

  it("are asked again once their session has ended", async () => {
    const visitor = await enterAs("alice");
    const { page } = visitor;
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    await isSettled(page);
    await page.evaluate(() => fetch("/console/session", { method: "DELETE" }));

    await isAskedAgain(visitor);
  });
});

describe("a session of an Admin key", () => {
  it("ends when the key is revoked", async () => {
    const { id, value } = await newKey({});
    const visitor = await enter({ key: value });
    await isSettled(visitor.page);

    await send("DELETE", `/v1/organization/admin_api_keys/${id}`);

    await isAskedAgain(visitor);
  });

  it("ends when its time is over, and a reload does not bring it back", async () => {
    const endsAt = Math.ceil(Date.now() / 1000) + 10;
    const { value } = await newKey({ expires_at: endsAt });
    const visitor = await enter({ key: value });
    await isSettled(visitor.page);

    await visitor.page.waitForFunction((end) => Date.now() > end, endsAt * 1000);

    await isAskedAgain(visitor, async (page) => {
      await page.reload();
      await page.getByLabel("Admin API key").waitFor();
    });
  });
});

/** The next page that needs the gateway shows the door, and what has happened. */
async function isAskedAgain(
  visitor: Visitor,
  afterwards: (page: Page) => Promise<void> = async () => {},
): Promise<void> {
  const { page } = visitor;
  await page.getByRole("navigation").getByRole("link", { name: "Costs", exact: true }).click();
  await page.getByRole("alert").getByText("Your session has ended. Sign in again.").waitFor();
  await afterwards(page);
  await visitor.leave();
}

async function isSettled(page: Page): Promise<void> {
  await page.waitForFunction(() => !document.querySelector('.waiting, [aria-busy="true"]'));
}

function newKey(body: object): Promise<{ id: string; value: string }> {
  const named = { name: "of a session", ...body };
  return send("POST", "/manage/v1/organization/admin_api_keys", named);
}

async function send<T>(method: string, path: string, body?: object): Promise<T> {
  const { admin_key: key, base_url: baseUrl } = inject("told");
  const answer = await fetch(baseUrl + path, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "idempotency-key": crypto.randomUUID(),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  expect(answer.ok).toBe(true);
  return (await answer.json()) as T;
}
