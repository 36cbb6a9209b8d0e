import { describe, expect, inject, it } from "vitest";
import { enter } from "./visitor";

describe("the audit log", () => {
  it("says who changed what, when, and on which object", async () => {
    const visitor = await enter();
    const { page } = visitor;
    await visitor.go("Projects and keys");
    await page.getByRole("button", { name: "New project" }).click();
    await page.getByLabel("Name").fill("Audited");
    await page.getByRole("button", { name: "Create project" }).click();
    await page.getByRole("heading", { name: "Audited", level: 1 }).waitFor();

    await visitor.go("Audit log");
    const row = page.getByRole("row", { name: /just now Console Created project Audited/ });
    await row.waitFor();
    await row.getByText("fields").click();
    await row.getByText("request ID").waitFor();
    await visitor.isContent();

    await row.getByRole("link", { name: "Audited" }).click();
    await page.getByRole("heading", { name: "Audited", level: 1 }).waitFor();
    await visitor.leave();
  });

  it("is read page by page", async () => {
    const visitor = await enter();
    const { page } = visitor;
    await visitor.go("Audit log");
    const rows = page.getByRole("table", { name: "Changes" }).locator("tbody tr");
    await rows.first().waitFor();
    const count = await rows.count();

    const older = page.getByRole("button", { name: "Show older ones" });
    await older.click();

    await expect.poll(() => rows.count()).toBeGreaterThan(count);
    // Every sign-in of other tests is a row, and what the operator did is older.
    const ofOperator = page.getByRole("row", { name: /Operator/ });
    while ((await ofOperator.count()) === 0) {
      const shown = await rows.count();
      await older.click();
      await expect.poll(() => rows.count()).toBeGreaterThan(shown);
    }
    await visitor.isContent();
    await visitor.leave();
  });

  it("explains what the key may not see", async () => {
    const visitor = await enter({ key: inject("told").narrow_key });
    await visitor.go("Audit log");

    await visitor.page.getByText("lacks the permission audit:read").waitFor();
    await visitor.isContent();
    await visitor.leave();
  });
});
