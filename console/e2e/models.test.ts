import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { enter, type Visitor } from "./visitor";

let visitor: Visitor;

beforeAll(async () => {
  visitor = await enter();
});
afterAll(() => visitor.leave());

/** A record is written a moment after its request has ended. */
async function recorded(id: string): Promise<number> {
  const { base_url, admin_key } = inject("told");
  const answer = await fetch(`${base_url}/manage/v1/organization/requests/${id}`, {
    headers: { authorization: `Bearer ${admin_key}` },
  });
  return answer.status;
}

describe("models", () => {
  it("are listed with the Admin key alone", async () => {
    const { page } = visitor;
    await visitor.go("Models");

    await page.getByRole("row", { name: /Example Large.*ready \$1\.00 \$0\.25 \$2\.00/ }).waitFor();
    await page.getByRole("row", { name: /Example Asleep.*not ready/ }).waitFor();
    await page.getByRole("row", { name: /Example Locked.*locked needs age/ }).waitFor();
    await visitor.isContent();
  });
});

describe("the playground", () => {
  it("streams an answer over the real route, and remembers the conversation", async () => {
    const { page } = visitor;
    await visitor.go("Playground");
    await page.getByRole("textbox", { name: "Project key" }).fill("tha_not");
    await page.getByText("A project key begins with thp_.").waitFor();
    await visitor.isContent();
    await page.getByRole("textbox", { name: "Project key" }).fill(inject("told").project_key);
    await page.getByRole("button", { name: "Use this key" }).click();
    await page.getByLabel("Message").waitFor();
    await visitor.isContent();

    await page.getByLabel("Message").fill("Say");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("hello.");
    expect(await page.getByLabel("Message").inputValue()).toBe("Say\nhello.");
    await page.keyboard.press("Enter");
    await page.getByText("3 input + 16 output tokens").waitFor();
    expect(await page.getByLabel("Message").inputValue()).toBe("");
    await page.getByRole("button", { name: "Send" }).waitFor();
    await page.getByLabel("Message").fill("Again.");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("+ 16 output tokens").nth(1).waitFor();

    expect(await page.getByRole("log").getByRole("article").count()).toBe(4);
    await visitor.isContent();
  });

  it("is metered like any other call", async () => {
    const { page } = visitor;

    await page.getByRole("log").getByText("$0.000035").first().waitFor();
    const link = page.getByRole("log").getByRole("link", { name: "Request" }).first();
    const id = (await link.getAttribute("href"))?.split("/").at(-1) ?? "";
    await expect.poll(() => recorded(id), { timeout: 30_000 }).toBe(200);
    await link.click();

    await page.getByText("$0.000035").waitFor();
    await visitor.isContent();
  });

  it("stops when it is told to, and says what a model cannot do", async () => {
    const { page } = visitor;
    await visitor.go("Playground");

    await page.getByLabel("Message").fill("Say hello.");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByRole("button", { name: "Send" }).waitFor();
    await page.getByLabel("Model").selectOption("Example Asleep (not ready)");
    await page.getByLabel("Message").fill("Say hello.");
    await page.getByRole("button", { name: "Send" }).click();

    await page.getByRole("alert").waitFor();
    await visitor.isContent();
  });

  it("names the policy that refused a request", async () => {
    const other = await enter();
    const { page } = other;
    await other.go("Playground");
    await page.getByRole("textbox", { name: "Project key" }).fill(inject("told").judged_key);
    await page.getByRole("button", { name: "Use this key" }).click();

    await page.getByLabel("Message").fill("Charge 4929 1111 2222 3344, please.");
    await page.getByRole("button", { name: "Send" }).click();

    await page.getByRole("alert").getByRole("link", { name: "Card numbers" }).waitFor();
    expect(await page.getByLabel("Message").inputValue()).toContain("Charge 4929");
    await other.isContent();
    await other.leave();
  });
});
