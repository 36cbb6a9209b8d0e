import { afterAll, beforeAll, describe, it } from "vitest";
import { enter, type Visitor } from "./visitor";

let visitor: Visitor;

beforeAll(async () => {
  visitor = await enter();
  await visitor.go("Limits and caps");
});
afterAll(() => visitor.leave());

describe("caps", () => {
  it("are shown with how full they are", async () => {
    const { page } = visitor;

    await page.getByRole("img", { name: /^Shop, this month: \$.* of \$400\.00$/ }).waitFor();
    await page.getByText("above 80 %").waitFor();
    await visitor.isContent();
  });

  it("are set on a key, changed and removed", async () => {
    const { page } = visitor;
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Set a cap" }).click();
    await dialog.getByLabel("On", { exact: true }).selectOption("Project Search");
    await dialog.getByLabel("Key").selectOption("Crawler");
    await dialog.getByLabel("Amount (USD)").fill("a lot");
    await dialog.getByText("Enter an amount in US dollars, such as 250 or 12.50.").waitFor();
    await visitor.isContent();

    await dialog.getByLabel("Amount (USD)").fill("1,234.50");
    await dialog.getByRole("button", { name: "Set cap" }).click();
    await page.getByRole("img", { name: /^Crawler, this month: .* of \$1,234\.50$/ }).waitFor();
    await page.getByRole("button", { name: "Change the cap of Crawler, this month" }).click();
    await dialog.getByLabel("Amount (USD)").fill("2000");
    await dialog.getByRole("button", { name: "Set cap" }).click();
    await page.getByRole("img", { name: /^Crawler, this month: .* of \$2,000\.00$/ }).waitFor();
    await page.getByRole("button", { name: "Remove the cap of Crawler, this month" }).click();
    await dialog.getByRole("button", { name: "Remove cap" }).click();

    await page.getByRole("img", { name: /^Crawler/ }).waitFor({ state: "detached" });
    await visitor.isContent();
  });
});

describe("limits of traffic", () => {
  it("are shown, and the operator's cannot be touched", async () => {
    const { page } = visitor;

    const operators = page.getByRole("row", { name: /The organization the operator 6,000/ });
    await operators.waitFor();
    await operators.getByRole("button").waitFor({ state: "detached" });
    await page.getByRole("row", { name: /Shop you 600 200,000 none/ }).waitFor();
  });

  it("are set, changed and removed", async () => {
    const { page } = visitor;
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Set a limit" }).click();
    await dialog.getByLabel("On", { exact: true }).selectOption("Project Search");
    await dialog.getByLabel("Concurrent requests").fill("none");
    await dialog.getByText("Enter a whole number of at least 1, or leave it empty.").waitFor();
    await visitor.isContent();

    await dialog.getByLabel("Concurrent requests").fill("7");
    await dialog.getByRole("button", { name: "Set limit" }).click();
    await page.getByRole("row", { name: /Search you none none 7/ }).waitFor();
    await page.getByRole("button", { name: "Change the limit of Search" }).click();
    await dialog.getByLabel("Requests per minute").fill("60");
    await dialog.getByRole("button", { name: "Set limit" }).click();
    await page.getByRole("row", { name: /Search you 60 none 7/ }).waitFor();
    await page.getByRole("button", { name: "Remove the limit of Search" }).click();
    await dialog.getByRole("button", { name: "Remove limit" }).click();

    await page.getByRole("row", { name: /Search you/ }).waitFor({ state: "detached" });
    await visitor.isContent();
  });
});
