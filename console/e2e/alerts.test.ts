import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { enter, type Visitor } from "./visitor";

let visitor: Visitor;

beforeAll(async () => {
  visitor = await enter();
  await visitor.go("Alerts");
});
afterAll(() => visitor.leave());

describe("alerts", () => {
  it("are subscribed to, and the secret is shown once", async () => {
    const { page } = visitor;
    const dialog = page.getByRole("dialog");
    await page.getByText("No alerts are sent yet.").waitFor();
    await page.getByRole("button", { name: "New alert" }).click();
    await dialog.getByLabel("Name").fill("Finance");
    await dialog.getByLabel("URL").fill("https://127.0.0.1:1/alerts");
    await dialog.getByLabel("Cap used (%)").fill("eighty");
    await dialog.getByText("Not understood.").waitFor();
    await dialog.getByRole("button", { name: "Create alert", disabled: true }).waitFor();
    await visitor.isContent();

    await dialog.getByLabel("Cap used (%)").fill("100");
    await dialog.getByLabel("Unsettled requests").fill("1000");
    await dialog.getByRole("button", { name: "Create alert" }).click();
    await dialog.getByRole("textbox", { name: "Signing secret" }).waitFor();
    await visitor.isContent();
    await dialog.getByRole("button", { name: "I have copied it" }).click();

    await page
      .getByRole("row", { name: /Finance .* caps at 100 %; 1000 requests without a final cost/ })
      .waitFor();
    const size = page.viewportSize();
    await page.setViewportSize({ width: 900, height: 800 });
    const name = page.getByRole("rowheader", { name: "Finance" }).locator("span");
    expect(await name.evaluate((element) => element.getClientRects().length)).toBe(1);
    if (size !== null) await page.setViewportSize(size);
    await visitor.isContent();
  });

  it("are refused by e-mail where the operator sends none", async () => {
    const { page, faults } = visitor;
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "New alert" }).click();
    await dialog.getByLabel("Name").fill("Platform");
    await dialog.getByRole("radio", { name: "E-mail" }).check();
    await dialog.getByLabel("Addresses").fill("a@b.example, c@d.example");
    await dialog.getByRole("button", { name: "Create alert" }).click();

    await dialog.getByText(/this deployment sends no e-mail/).waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    faults.length = 0;
  });

  it("are tested, and their state is shown", async () => {
    const { page } = visitor;
    await page.getByRole("button", { name: "Send a test alert to Finance" }).click();
    const row = page.getByRole("row", { name: /This is a test alert/ });
    await row.getByText("pending").waitFor();

    for (let reads = 0; reads < 30; reads++) {
      await page.getByRole("button", { name: "Refresh" }).click();
      await row.waitFor();
      if ((await row.getByText(/not public/).count()) > 0) break;
      await page.waitForTimeout(1000);
    }

    await row.getByText(/the host has an address that is not public/).waitFor();
    await visitor.isContent();
  });

  it("are changed", async () => {
    const { page } = visitor;
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Edit Finance" }).click();
    await dialog.getByLabel("Cap used (%)").fill("95");
    await visitor.isContent();
    await dialog.getByRole("button", { name: "Save" }).click();

    await page.getByRole("row", { name: /Finance .* caps at 95 %; 1000 requests/ }).waitFor();
    await visitor.isContent();
  });

  it("get another secret, and end", async () => {
    const { page } = visitor;
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "New secret for Finance" }).click();
    await dialog.getByText(/signed with both secrets/).waitFor();
    await visitor.isContent();
    await dialog.getByRole("button", { name: "Replace secret" }).click();
    await dialog.getByRole("textbox", { name: "Signing secret" }).waitFor();
    await dialog.getByRole("button", { name: "I have copied it" }).click();
    await page.getByRole("button", { name: "Delete Finance" }).click();
    await dialog.getByRole("button", { name: "Delete alert" }).click();

    await page.getByText("No alerts are sent yet.").waitFor();
    await page.getByText("No alert was raised in the last 30 days.").waitFor();
    await visitor.isContent();
  });
});
