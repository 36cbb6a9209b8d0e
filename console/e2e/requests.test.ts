import { afterAll, beforeAll, describe, inject, it } from "vitest";
import { enter, type Visitor, withBrowser } from "./visitor";

const browser = withBrowser();
let visitor: Visitor;

beforeAll(async () => {
  visitor = await enter(browser());
});
afterAll(() => visitor.leave());

describe("requests", () => {
  it("are listed with how they ended", async () => {
    const { page } = visitor;
    await visitor.go("Requests");

    await page
      .getByRole("row", { name: /200 .* none/ })
      .first()
      .waitFor();
    await visitor.isContent();
  });

  // Whatever other walks have asked for stands on the first page too, so each kind is asked for.
  it.each([
    ["Failed: 5xx", /502 example\/asleep the model’s engine/],
    ["Refused: 4xx", /404 example\/unknown the caller/],
    ["Refused: 4xx", /403 .* the caller policy_violation Card numbers/],
  ])("can be narrowed to %s", async (kind, expected) => {
    const { page } = visitor;

    await page.getByRole("radio", { name: kind }).check();

    await page
      .getByRole("row", { name: /200 .* none/ })
      .first()
      .waitFor({ state: "detached" });
    await page.getByRole("row", { name: expected }).first().waitFor();
    await visitor.isContent();
  });

  it("are found by their ID, with a bar of where the time went", async () => {
    const { page } = visitor;
    await page.getByLabel("Request ID").fill(inject("told").failed_request_id);
    await page.keyboard.press("Enter");

    await page.getByText("the model’s engine").waitFor();
    await page.getByRole("link", { name: "Shop" }).waitFor();
    await page.getByRole("img", { name: /admission/ }).waitFor();
    await visitor.isContent();
  });

  it("that never were are not found", async () => {
    const { page } = visitor;
    await visitor.go("Requests");
    await page.getByLabel("Request ID").fill("../requests?limit=1");
    await page.keyboard.press("Enter");

    await page.getByRole("alert").waitFor();
    await visitor.isContent();
  });
});
