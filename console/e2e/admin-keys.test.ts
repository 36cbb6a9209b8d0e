import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { enter, type Visitor } from "./visitor";

let visitor: Visitor;
let value: string;

beforeAll(async () => {
  visitor = await enter();
});
afterAll(() => visitor.leave());

/** The status that the gateway answers a key with. */
async function asks(key: string, path: string): Promise<number> {
  const answer = await fetch(`${inject("told").base_url}${path}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  return answer.status;
}

const CREDITS = "/manage/v1/organization/credits";
const PROJECTS = "/manage/v1/organization/projects";

describe("Admin keys", () => {
  it("are listed with their permissions, and the one in use is marked", async () => {
    const { page } = visitor;
    await visitor.go("Admin keys");

    await page.getByRole("row", { name: /Console you.*everything/ }).waitFor();
    await page.getByRole("row", { name: /Only projects.*projects:read/ }).waitFor();
    await visitor.isContent();
  });

  it("begin without a permission, and cannot be created so", async () => {
    const { page } = visitor;
    await page.getByRole("button", { name: "New Admin key" }).click();
    await page.getByLabel("Name").fill("Accounting");

    expect(await page.getByRole("checkbox", { checked: true }).count()).toBe(0);
    expect(await page.getByRole("button", { name: "Create key" }).isDisabled()).toBe(true);
    await visitor.isContent();
  });

  it("are created with what was chosen, and their value is shown once", async () => {
    const { page } = visitor;
    await page.getByLabel("Permissions", { exact: true }).selectOption("Read costs and credit");
    await page.getByRole("checkbox", { name: /projects:read/ }).check();
    await page.getByRole("button", { name: "Create key" }).click();
    value = await page.getByRole("textbox", { name: "Admin key" }).inputValue();
    await visitor.isContent();
    await page.getByRole("button", { name: "I have copied it" }).click();
    await page
      .getByRole("row", { name: /Accounting.*billing:read projects:read spending_limits:read/ })
      .waitFor();

    expect(value).toMatch(/^tha_[0-9A-Za-z]{49}$/);
    expect(await page.content()).not.toContain(value);
    expect(await asks(value, CREDITS)).toBe(200);
    expect(await asks(value, "/manage/v1/organization/audit")).toBe(403);
  });

  it("lose permissions and keep their value", async () => {
    const { page } = visitor;
    await page.getByRole("button", { name: "Reduce permissions of Accounting" }).click();
    expect(
      await page.getByRole("button", { name: "Reduce permissions", exact: true }).isDisabled(),
    ).toBe(true);
    await page.getByRole("checkbox", { name: /billing:read/ }).uncheck();
    await visitor.isContent();
    await page.getByRole("button", { name: "Reduce permissions", exact: true }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("row", { name: /Accounting \S+ projects:read spending/ }).waitFor();

    await expect.poll(() => asks(value, CREDITS)).toBe(403);
    expect(await asks(value, PROJECTS)).toBe(200);
  });

  it("are revoked after a question, with a warning for the one in use", async () => {
    const { page } = visitor;
    await page.getByRole("button", { name: "Revoke Console" }).click();
    await page.getByText("You are signed in with this key.").waitFor();
    await visitor.isContent();
    await page.getByRole("button", { name: "Cancel" }).click();

    await page.getByRole("button", { name: "Revoke Accounting" }).click();
    await page.getByRole("button", { name: "Revoke for good" }).click();
    await page.getByRole("row", { name: /Accounting/ }).waitFor({ state: "detached" });

    await expect.poll(() => asks(value, PROJECTS)).toBe(401);
  });

  it("explain what a key may not do", async () => {
    const narrow = await enter({ key: inject("told").narrow_key });
    await narrow.go("Admin keys");

    await narrow.page.getByText("lacks the permission admin_api_keys:read").waitFor();
    await narrow.isContent();
    await narrow.leave();
  });
});
