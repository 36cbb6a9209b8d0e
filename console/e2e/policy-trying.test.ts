import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { enter, type Visitor } from "./visitor";

let visitor: Visitor;

beforeAll(async () => {
  visitor = await enter();
});
afterAll(() => visitor.leave());

async function open(name: string, one: Visitor = visitor): Promise<void> {
  await one.go("Policies");
  await one.page.getByRole("link", { name }).click();
  await one.page.getByRole("heading", { name, level: 1 }).waitFor();
}

describe("advice", () => {
  it("comes while the rule is being written", async () => {
    const { page } = visitor;
    await open("Card numbers");
    const advice = page.getByRole("status", { name: "Advice" });
    await advice.getByText("No advice: nothing in the rule is known to mislead a judge.").waitFor();

    await page.getByLabel("Rule").fill("What bad words does it contain?");

    await advice.getByText("Ask what can be answered with yes or no").waitFor();
    await advice.getByText("Name what is meant").waitFor();
    await visitor.isContent();
  });

  it("is asked for once somebody pauses, and not for every letter", async () => {
    const { page } = visitor;
    const asked: string[] = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/lint")) asked.push(request.postData() ?? "");
    });
    const rule = "Is it never without any price?";

    await page.getByLabel("Rule").fill("");
    await page.getByLabel("Rule").pressSequentially(rule);
    await page.getByText("Say it without a negation of a negation").waitFor();

    expect(asked.length).toBeLessThan(rule.length / 2);
    expect(asked.at(-1)).toBe(JSON.stringify({ rule }));
    await page.getByRole("button", { name: "Discard edits" }).click();
  });
});

describe("a text on trial", () => {
  it("is judged by the draft and by what is published", async () => {
    const { page } = visitor;
    await open("Card numbers");
    await page.getByLabel("Text", { exact: true }).fill("It is 4929 1111 2222 3333.");

    await page.getByRole("button", { name: "Judge it" }).click();

    const verdicts = page.getByRole("status", { name: "Verdicts" });
    await page.getByRole("region", { name: "Test it on a text" }).getByText("a-judge").waitFor();
    for (const name of ["By the draft", "By the published version"]) {
      const verdict = verdicts.getByRole("region", { name });
      await verdict.getByText("match", { exact: true }).waitFor();
      await verdict.getByRole("img", { name: "Score 97 %, a match from 80 %" }).waitFor();
    }
    await visitor.isContent();
  });

  it("is judged by a rule that is not saved yet", async () => {
    const { page } = visitor;
    await page.getByLabel("Rule").fill("Does the text give legal advice?");
    await page.getByText("The text or the rule has changed since this test.").waitFor();
    await visitor.isContent();

    await page.getByRole("button", { name: "Judge it" }).click();

    const verdicts = page.getByRole("status", { name: "Verdicts" });
    await verdicts.getByRole("region", { name: "By the draft" }).getByText("no match").waitFor();
    await verdicts
      .getByRole("region", { name: "By the published version" })
      .getByText("match", { exact: true })
      .waitFor();
    await page.getByRole("button", { name: "Discard edits" }).click();
  });

  it("waits until the rule is a question", async () => {
    const { page } = visitor;

    await page.getByLabel("Rule").fill("Card numbers.");

    await page.getByText("The rule must be a question that ends with a question mark.").waitFor();
    expect(await page.getByRole("button", { name: "Judge it" }).isDisabled()).toBe(true);
    await page.getByRole("button", { name: "Discard edits" }).click();
  });

  it("that the judge does not answer has no verdict, and is told why", async () => {
    const { page } = visitor;
    await page.getByLabel("Text", { exact: true }).fill("A riddle.");

    await page.getByRole("button", { name: "Judge it" }).click();

    const draft = page.getByRole("region", { name: "By the draft" });
    await draft.getByText("not judged").waitFor();
    await draft.getByText("There is no verdict: the judge said neither yes nor no.").waitFor();
    await visitor.isContent();
  });

  it("of a policy that was never published is judged by its draft alone", async () => {
    const { page } = visitor;
    await open("Competitor names");
    await page.getByLabel("Text", { exact: true }).fill("Anything.");

    await page.getByRole("button", { name: "Judge it" }).click();

    const verdicts = page.getByRole("status", { name: "Verdicts" });
    await verdicts.getByRole("region", { name: "By the draft" }).getByText("no match").waitFor();
    expect(await verdicts.getByRole("region").count()).toBe(1);
    await visitor.isContent();
  });

  it("whose rule the demonstration judge does not know says which setting to change", async () => {
    const trial = await enter({ baseUrl: inject("told").demonstration_base_url });
    const { page } = trial;
    await trial.go("Policies");
    await page.getByText("of this trial knows only questions").waitFor();
    await trial.isContent();
    await open("Card numbers", trial);
    const panel = page.getByRole("region", { name: "Test it on a text" });
    await panel.getByText("demonstration judge", { exact: true }).waitFor();
    await page.getByLabel("Text", { exact: true }).fill("A riddle.");

    await page.getByRole("button", { name: "Judge it" }).click();

    const draft = page.getByRole("region", { name: "By the draft" });
    await draft.getByText("the demonstration judge knows only some kinds of question").waitFor();
    await draft.getByText("name a model in [judge] of tollhouse.toml").waitFor();
    await trial.isContent();
    await trial.leave();
  });

  it("cannot be judged where there is no judge, which is said", async () => {
    const elsewhere = await enter({ baseUrl: inject("told").unjudged_base_url });
    const { page } = elsewhere;
    await open("Card numbers", elsewhere);
    await page.getByText("No advice: nothing in the rule is known to mislead a judge.").waitFor();
    await page.getByLabel("Text", { exact: true }).fill("Anything.");

    await page.getByRole("button", { name: "Judge it" }).click();

    await page.getByRole("alert").getByText("This gateway has no judge.").waitFor();
    await elsewhere.isContent();
    await elsewhere.leave();
  });

  it("is not for a key that may only read policies, which is said", async () => {
    const reader = await enter({ key: inject("told").reading_key });
    const { page } = reader;
    await open("Card numbers", reader);
    await page.getByText("Your Admin key lacks the permission policies:write").waitFor();
    await page.getByLabel("Text", { exact: true }).fill("Anything.");

    await page.getByRole("button", { name: "Judge it" }).click();

    const panel = page.getByRole("region", { name: "Test it on a text" });
    await panel.getByText("policies:write").waitFor();
    await reader.isContent();
    await reader.leave();
  });
});
