import { describe, expect, inject, it } from "vitest";
import { enter } from "./visitor";

/** Too little to be seen in the figures that other tests read. */
const AMOUNT = "0.0012";

describe("credit", () => {
  it("shows the balance and what it is made of, and grows by a test payment", async () => {
    const visitor = await enter();
    const { page } = visitor;
    await visitor.go("Credit");
    const balance = page.getByRole("region", { name: "Balance" });
    await balance.getByText("$399.25").waitFor();
    await page.getByRole("row", { name: /Operator \$400\.00/ }).waitFor();
    await visitor.isContent();

    await page.getByRole("button", { name: "Test payment" }).click();
    await page.getByLabel("Amount (USD)").fill("nothing");
    await page.getByText("An amount such as 250 or 12.50.").waitFor();
    expect(await page.getByRole("button", { name: "Add credit" }).isDisabled()).toBe(true);
    await page.getByLabel("Amount (USD)").fill(AMOUNT);
    await visitor.isContent();
    await page.getByRole("button", { name: "Add credit" }).click();

    await page.getByRole("row", { name: /Test payment.*Admin key \$0\.0012/ }).waitFor();
    await visitor.isContent();
    await visitor.leave();
  });

  it("offers no test payment where the gateway is no sandbox", async () => {
    const visitor = await enter({ baseUrl: inject("told").unjudged_base_url });
    const { page } = visitor;
    await visitor.go("Credit");
    await page.getByRole("row", { name: /Operator \$400\.00/ }).waitFor();

    expect(await page.getByRole("button", { name: "Test payment" }).count()).toBe(0);
    await visitor.leave();
  });

  it("explains what the key may not see", async () => {
    const visitor = await enter({ key: inject("told").narrow_key });
    await visitor.go("Credit");

    const balance = visitor.page.getByRole("region", { name: "Balance" });
    await balance.getByText("lacks the permission billing:read").waitFor();
    await visitor.isContent();
    await visitor.leave();
  });
});
