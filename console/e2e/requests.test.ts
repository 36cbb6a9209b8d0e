import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { enter, type Visitor } from "./visitor";

let visitor: Visitor;

beforeAll(async () => {
  visitor = await enter();
});
afterAll(() => visitor.leave());

describe("requests", () => {
  it("are listed with how they ended", async () => {
    const { page } = visitor;
    await visitor.go("Requests");

    await page
      .getByRole("row", { name: /200 .* Succeeded/ })
      .first()
      .waitFor();
    await visitor.isContent();
  });

  // Whatever other walks have asked for stands on the first page too, so each kind is asked for.
  it.each([
    ["Failed", /502 Shop \/ Web example\/asleep Failed by the model’s engine/],
    ["Client errors", /404 Shop \/ Web example\/unknown Client error/],
    ["Refused", /403 .* Refused by Card numbers/],
  ])("can be narrowed to %s", async (kind, expected) => {
    const { page } = visitor;

    await page.getByRole("radio", { name: kind }).check();

    await page
      .getByRole("row", { name: /200 .* Succeeded/ })
      .first()
      .waitFor({ state: "detached" });
    await page.getByRole("row", { name: expected }).first().waitFor();
    await visitor.isContent();
  });

  it("are found by their ID, with a bar of where the time went", async () => {
    const { page } = visitor;
    await page.getByLabel("Request ID").fill(inject("told").failed_request_id);
    await page.keyboard.press("Enter");

    await page.getByText("Failed by the model’s engine").waitFor();
    await page.getByRole("link", { name: "Shop" }).waitFor();
    await page.getByRole("img", { name: /admission/ }).waitFor();
    await visitor.isContent();
  });

  it("that a policy refused show its score, its threshold and the time of judging", async () => {
    const { page } = visitor;
    await visitor.go("Requests");
    await page.getByRole("radio", { name: "Refused" }).check();
    await page
      .getByRole("row", { name: /403 .* Refused by Card numbers/ })
      .first()
      .getByRole("rowheader")
      .getByRole("link")
      .click();

    await page
      .getByRole("region", { name: "Refused by policy" })
      .getByRole("row", {
        name: /Card numbers v1 pol_\w+ Request Score [\d.]+ %, threshold [\d.]+ %/,
      })
      .waitFor();
    await page
      .getByRole("region", { name: "Policies", exact: true })
      .getByRole("row", { name: /Card numbers v1 .* Request enforcing match/ })
      .waitFor();
    await page.getByRole("img", { name: /judging/ }).waitFor();
    await page.getByText("raise its threshold.").getByRole("link").waitFor();
    await visitor.isContent();
  });

  it("with a wrong parameter name it", async () => {
    const { page } = visitor;
    await visitor.go("Requests");
    await page.getByRole("radio", { name: "Client errors" }).check();
    await page
      .getByRole("row", { name: /400 .* invalid_type/ })
      .first()
      .getByRole("rowheader")
      .getByRole("link")
      .click();

    await page.getByText("Wrong parameter").waitFor();
    await page.getByText("temperature", { exact: true }).waitFor();
    await visitor.isContent();
  });

  it("are counted by outcome, and all outcomes are all requests", async () => {
    const { page } = visitor;
    await visitor.go("Requests");
    const choices = page.getByRole("group", { name: "Outcome" });
    await choices.getByText(/^All \d/).waitFor();

    const [all, ...counts] = (await choices.locator("label").allInnerTexts()).map((text) =>
      Number(text.replace(/\D/g, "")),
    );

    expect(counts).not.toContain(0);
    expect(counts.reduce((sum, each) => sum + each, 0)).toBe(all);
  });

  it("are found by project, key, policy and error code, and the address keeps it", async () => {
    const { page } = visitor;
    await visitor.go("Requests");
    const filters = page.getByRole("form", { name: "Filters" });
    const answered = page.getByRole("row", { name: /200 .* Succeeded/ }).first();
    await answered.waitFor();

    await filters.getByLabel("Error code").fill("invalid_type");
    await filters.getByRole("button", { name: "Filter" }).click();
    await answered.waitFor({ state: "detached" });
    await page.getByRole("row", { name: /400 Shop .* invalid_type/ }).waitFor();
    expect(new URL(page.url()).searchParams.get("code")).toBe("invalid_type");
    await visitor.isContent();

    await filters.getByLabel("Error code").fill("");
    await page.keyboard.press("Enter");
    await answered.waitFor();
    await filters.getByLabel("Matched by policy").selectOption({ label: "Card numbers" });
    await answered.waitFor({ state: "detached" });
    await page
      .getByRole("row", { name: /403 .* Refused by Card numbers/ })
      .first()
      .waitFor();
    await visitor.isContent();

    await filters.getByLabel("Matched by policy").selectOption({ label: "Any" });
    await filters.getByLabel("Project").selectOption({ label: "Shop" });
    await answered.waitFor();
    await page.getByRole("radio", { name: "From … to" }).check();
    await filters.getByLabel("From (UTC)").fill("2100-01-01T00:00");
    await page.keyboard.press("Enter");
    await page.getByText("No request of this range matches the filters.").waitFor();
    await visitor.isContent();
    await page.getByRole("button", { name: "Clear the filters" }).click();
    await answered.waitFor();
  });

  it("are added as they end while the list is live", async () => {
    const { page } = visitor;
    await visitor.go("Requests");
    await page.getByLabel("Live").check();
    await page
      .getByRole("row", { name: /200 .* Succeeded/ })
      .first()
      .waitFor();

    const model = `example/live-${Date.now()}`;
    const answer = await fetch(`${inject("told").base_url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${inject("told").project_key}`,
        "content-type": "application/json",
      },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello." }] }),
    });

    expect(answer.status).toBe(404);
    await page.getByRole("row", { name: new RegExp(`404 .* ${model} Client error`) }).waitFor();
    await visitor.isContent();
  });

  it("are not asked for while the tab is hidden", async () => {
    const { page } = visitor;
    await visitor.go("Overview");
    await page.clock.install();
    await visitor.go("Requests");
    const asked: string[] = [];
    page.on("request", (request) => {
      if (request.url().includes("/organization/requests?")) asked.push(request.url());
    });
    const poll = () => page.waitForResponse((response) => asked.includes(response.url()));
    const hide = (isHidden: boolean) =>
      page.evaluate((isHidden) => {
        Object.defineProperty(document, "hidden", { configurable: true, value: isHidden });
      }, isHidden);

    const first = poll();
    await page.getByLabel("Live").check();
    await first;
    await page
      .getByRole("row", { name: /200 .* Succeeded/ })
      .first()
      .waitFor();
    await hide(true);
    asked.length = 0;
    await page.clock.runFor(60_000);
    expect(asked).toEqual([]);

    const again = poll();
    await hide(false);
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await again;
    expect(asked[0]).toContain("start_time=");
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
