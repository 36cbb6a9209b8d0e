import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { enter, type Visitor } from "./visitor";

let visitor: Visitor;

beforeAll(async () => {
  visitor = await enter();
});
afterAll(() => visitor.leave());

async function models(key: string): Promise<number> {
  const answer = await fetch(`${inject("told").base_url}/v1/models`, {
    headers: { authorization: `Bearer ${key}` },
  });
  return answer.status;
}

describe("projects and keys", () => {
  it("are listed, archived ones too", async () => {
    const { page } = visitor;
    await visitor.go("Projects and keys");

    await page.getByRole("row", { name: /Shop.*active/ }).waitFor();
    await page.getByRole("row", { name: /Old site.*archived/ }).waitFor();
    await visitor.isContent();
  });

  it("begin with a new project", async () => {
    const { page } = visitor;
    await page.getByRole("button", { name: "New project" }).click();
    await visitor.isContent();

    await page.getByLabel("Name").fill("Kiosk");
    await page.getByRole("button", { name: "Create project" }).click();

    await page.getByRole("heading", { name: "Kiosk", level: 1 }).waitFor();
    await page.getByText("There is no key yet.").waitFor();
    await visitor.isContent();
  });

  it("give a key that works, and show its value once", async () => {
    const { page } = visitor;
    await page.getByRole("button", { name: "New key" }).click();
    await visitor.isContent();

    await page.getByLabel("Name").fill("Counter");
    await page.getByLabel("Spending cap in USD").fill("abc");
    await page.getByText("Enter an amount in US dollars").waitFor();
    await page.getByLabel("Spending cap in USD").fill("25");
    await page.getByRole("button", { name: "Create key" }).click();
    const value = await page.getByRole("textbox", { name: "Key" }).inputValue();
    const curl = await page.getByRole("region", { name: "First call with curl" }).innerText();
    await page.getByRole("radio", { name: "Python" }).check();
    const python = await page.getByRole("region", { name: "First call with Python" }).innerText();
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await visitor.isContent();
    await page.getByRole("button", { name: "Keep it open" }).click();
    expect(await page.getByRole("textbox", { name: "Key" }).inputValue()).toBe(value);
    await page.getByRole("button", { name: "I have copied it" }).click();
    await page.getByRole("row", { name: /Counter.*active never \$0.00 \$25.00/ }).waitFor();

    expect(value).toMatch(/^thp_[0-9A-Za-z]{49}$/);
    expect(curl).toContain(`Bearer ${value}`);
    expect(python).toContain(`api_key="${value}"`);
    expect(await models(value)).not.toBe(401);
    expect(await page.content()).not.toContain(value);
    await visitor.isContent();
  });

  it("give a key for each of a list of names, once", async () => {
    const { page } = visitor;
    await page.getByRole("button", { name: "Several keys" }).click();
    await page.getByLabel("Names").fill("Ada\nGrace\n\nAda");
    await page.getByLabel("Monthly cap of each key").fill("5");
    await visitor.isContent();
    await page.getByRole("button", { name: "Create keys" }).click();

    const started = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download CSV" }).click();
    const text = readFileSync(await (await started).path(), "utf8");
    await visitor.isContent();
    await page.getByRole("button", { name: "I have saved them" }).click();
    await page.getByRole("row", { name: /Grace.*active never \$0.00 \$5.00/ }).waitFor();

    const [head, ...rows] = text.trimEnd().split("\r\n");
    expect(head).toBe("name,key");
    expect(rows.map((row) => row.split(",")[0])).toEqual(["Ada", "Grace"]);
    expect(await models(rows[0]?.split(",")[1] ?? "")).not.toBe(401);
    expect(await page.getByRole("row", { name: /Ada.*active/ }).count()).toBe(1);
  });

  it("rotate a key with an overlap, which the list shows and ends", async () => {
    const { page } = visitor;
    await page.getByRole("button", { name: "Rotate Counter" }).click();
    await page.getByRole("radio", { name: "No", exact: true }).check();
    await page.getByLabel("The old value keeps working for").selectOption("1 hour");
    await visitor.isContent();
    await page.getByRole("button", { name: "Rotate", exact: true }).click();
    const value = await page.getByRole("textbox", { name: "Key" }).inputValue();
    await page.getByText("The old value works until").waitFor();
    await page.getByRole("button", { name: "I have copied it" }).click();
    const row = page.getByRole("row", { name: /Counter.*old value works until/ });
    await row.waitFor();
    await visitor.isContent();
    await page.getByRole("button", { name: "End now: the old value of Counter" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "End the old value" }).click();
    await row.waitFor({ state: "detached" });

    expect(value).toMatch(/^thp_/);
    expect(await models(value)).not.toBe(401);
  });

  it("end a leaked value at once, and lead to what it was used for", async () => {
    const { page } = visitor;
    await page.getByRole("button", { name: "Rotate Counter" }).click();
    await page.getByRole("radio", { name: "Yes" }).check();
    await visitor.isContent();
    await page.getByRole("button", { name: "Rotate and end the old value" }).click();
    await page.getByText("The old value no longer works.").waitFor();

    const link = page.getByRole("link", { name: "See what the key was used for" });
    expect(await link.getAttribute("href")).toMatch(/requests\?project=[0-9a-f-]+&key=[0-9a-f-]+/);
    await page.getByRole("button", { name: "I have copied it" }).click();
    expect(await page.getByText("old value works until").count()).toBe(0);
  });

  it("suspend, resume and revoke a key, each after a question", async () => {
    const { page } = visitor;
    for (const [verb, sure, status] of [
      ["Suspend", "Suspend", "suspended"],
      ["Resume", "Resume", "active"],
      ["Revoke", "Revoke for good", "revoked"],
    ] as const) {
      await page.getByRole("button", { name: `${verb} Counter` }).click();
      await page.getByRole("dialog").getByRole("button", { name: sure, exact: true }).click();
      await page.getByRole("row", { name: new RegExp(`Counter.*${status}`) }).waitFor();
    }
    await visitor.isContent();
  });

  it("leave everything as it is for whoever presses Escape", async () => {
    const { page } = visitor;
    await page.getByRole("button", { name: "Archive" }).click();
    await page.getByRole("dialog").waitFor();

    await page.keyboard.press("Escape");

    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "New key" }).waitFor();
  });

  it("edit and archive a project", async () => {
    const { page } = visitor;
    await page.getByRole("button", { name: "Edit", exact: true }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("Booth");
    await page.getByLabel("Only these models").fill("example/large");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "Booth", level: 1 }).waitFor();
    await page.getByRole("definition").filter({ hasText: "example/large" }).waitFor();

    await page.getByRole("button", { name: "Archive" }).click();
    await page.getByRole("button", { name: "Archive for good" }).click();

    await page.getByRole("button", { name: "New key" }).waitFor({ state: "detached" });
    await visitor.isContent();
  });

  it("explain what a key may not do", async () => {
    const narrow = await enter({ key: inject("told").narrow_key });
    await narrow.go("Projects and keys");
    await narrow.page.getByRole("button", { name: "New project" }).click();
    await narrow.page.getByLabel("Name").fill("Kiosk");
    await narrow.page.getByRole("button", { name: "Create project" }).click();

    const dialog = narrow.page.getByRole("dialog");
    await dialog.getByText("lacks the permission projects:create").waitFor();
    await narrow.isContent();
    await narrow.leave();
  });
});
