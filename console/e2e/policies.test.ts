import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { enter, type Visitor } from "./visitor";

let visitor: Visitor;

beforeAll(async () => {
  visitor = await enter();
});
afterAll(() => visitor.leave());

/** Somebody else, without a browser. */
async function call(method: string, path: string, body?: object): Promise<Policy> {
  const answer = await fetch(`${inject("told").base_url}/manage/v1/organization/policies/${path}`, {
    method,
    headers: {
      authorization: `Bearer ${inject("told").admin_key}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await answer.json()) as Policy;
}

interface Policy {
  readonly name: string;
  readonly state: string;
  readonly revision: number;
  readonly current_version: number | null;
  readonly draft: {
    readonly mode: string;
    readonly match_threshold_basis_points: number | null;
    readonly ends_answer_early: boolean;
  };
}

describe("policies", () => {
  it("are listed with their state", async () => {
    const { page } = visitor;
    await visitor.go("Policies");

    await page.getByRole("row", { name: /Competitor names.*draft/ }).waitFor();
    await page.getByRole("row", { name: /Card numbers.*enforcing/ }).waitFor();
    await page.getByRole("row", { name: /Home addresses.*paused/ }).waitFor();
    await visitor.isContent();
  });

  it("begin as a draft, which must be a question", async () => {
    const { page } = visitor;
    await page.getByRole("link", { name: "New policy" }).click();
    await page.getByLabel("Name").fill("Medical advice");
    await page.getByLabel("Rule").fill("No medical advice.");
    await page.getByText("Enter a yes-or-no question that ends with a question mark.").waitFor();
    await visitor.isContent();

    await page.getByLabel("Rule").fill("Does the text give bad medical advice?");
    await page.getByRole("status", { name: "Advice" }).getByText("Name what is meant").waitFor();
    await page.getByLabel("Rule").fill("Does the text give medical advice?");
    await page.getByLabel("Text", { exact: true }).fill("Take two of these every day.");
    await page.getByRole("button", { name: "Judge it" }).click();
    await page.getByRole("region", { name: "By the draft" }).getByText("no match").waitFor();
    await visitor.isContent();

    await page.getByLabel("Scope").selectOption("Chosen projects");
    await page.getByLabel("Search").check();
    await page.getByRole("button", { name: "Save as draft" }).click();

    await page.getByRole("heading", { name: "Medical advice", level: 1 }).waitFor();
    await page.getByText("This policy is not published yet").waitFor();
    await page.getByText("A draft affects nothing").waitFor();
    await visitor.isContent();
  });

  it("apply once they are published", async () => {
    const { page } = visitor;
    await page.getByRole("button", { name: "Publish" }).click();
    await page
      .getByText("The judge is asked first. It becomes version 1. Matches are recorded.")
      .waitFor();
    await visitor.isContent();

    await page.getByRole("dialog").getByRole("button", { name: "Publish" }).click();

    await page.getByRole("heading", { name: "Published: version 1" }).waitFor();
    await page.getByText("monitoring", { exact: true }).waitFor();
    expect(await page.getByRole("button", { name: "Publish" }).isDisabled()).toBe(true);
  });

  it("show beside the draft what still applies", async () => {
    const { page } = visitor;
    await page.getByLabel("Mode").selectOption("Enforcing: a match refuses the request");
    await page.getByText("Save the draft to publish it.").waitFor();

    await page.getByRole("button", { name: "Save draft" }).click();

    const published = page.getByRole("region", { name: "Published: version 1" });
    await published.getByText("Monitoring: matches are recorded").waitFor();
    await published.getByText("the draft differs").waitFor();
    await visitor.isContent();
  });

  it("end a matching answer early, where answers are judged", async () => {
    const { page } = visitor;
    const early = page.getByLabel("End a matching answer while it is being written");
    await page.getByLabel("Judges").selectOption("Requests");
    await page.getByText("Only for policies that evaluate responses.").waitFor();
    expect(await early.isDisabled()).toBe(true);
    await visitor.isContent();

    await page.getByLabel("Judges").selectOption("Responses");
    await early.check();
    await page.getByRole("button", { name: "Save draft" }).click();

    const published = page.getByRole("region", { name: "Published: version 1" });
    await published.getByText("No the draft differs").waitFor();
    expect(await early.isChecked()).toBe(true);
    await visitor.isContent();
  });

  it("say so beside the choice if the rule asks for what is missing", async () => {
    const { page } = visitor;
    const advice = page.getByRole("status", { name: "Advice on ending answers" });
    expect(await advice.textContent()).toBe("");

    await page.getByLabel("Rule").fill("Does the text lack a warning?");

    await advice.getByText("must never end an answer early").waitFor();
    await visitor.isContent();
    await page.getByRole("button", { name: "Discard edits" }).click();
    await advice.getByText("must never end an answer early").waitFor({ state: "detached" });
  });

  it("can be paused and resumed", async () => {
    const { page } = visitor;

    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await page.getByText("paused", { exact: true }).waitFor();
    await page.getByText("Save the draft to publish it.").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
    await page.getByText("monitoring", { exact: true }).waitFor();

    await visitor.isContent();
  });

  it("show a conflict with what was changed, and lose neither side", async () => {
    const { page } = visitor;
    const id = inject("told").policy_id;
    await visitor.go("Policies");
    await page.getByRole("link", { name: "Home addresses" }).click();
    await page.getByLabel("Name").fill("Private addresses");
    const { revision } = await call("GET", id);
    await call("PATCH", id, {
      revision,
      name: "Addresses",
      match_threshold_basis_points: 9000,
      ends_answer_early: true,
    });

    await page.getByRole("button", { name: "Save draft" }).click();
    const conflict = page.getByRole("alert");
    const yours = conflict.getByRole("row", { name: "Name" });
    await yours.getByRole("cell", { name: "Private addresses" }).waitFor();
    await yours.getByRole("cell", { name: "Addresses", exact: true }).waitFor();
    await conflict.getByRole("row", { name: /Match from.*90.*not changed/ }).waitFor();
    await conflict.getByRole("row", { name: "Ends answers early No Yes not changed" }).waitFor();
    await visitor.isContent();

    await conflict.getByRole("button", { name: "Keep my edits" }).click();
    await page.getByRole("button", { name: "Save draft" }).click();
    await page.getByRole("heading", { name: "Private addresses", level: 1 }).waitFor();

    const saved = await call("GET", id);
    expect(saved.name).toBe("Private addresses");
    expect(saved.draft.match_threshold_basis_points).toBe(9000);
    expect(saved.draft.ends_answer_early).toBe(true);
    await visitor.isContent();
  });

  it("show a conflict also to whoever only publishes", async () => {
    const { page } = visitor;
    const id = inject("told").policy_id;
    const { revision } = await call("GET", id);
    await call("PATCH", id, { revision, name: "Addresses" });

    await page.getByRole("button", { name: "Publish" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Publish" }).click();
    await page.getByRole("alert").getByText("This policy was changed elsewhere").waitFor();
    await page.getByRole("button", { name: "Use their draft" }).click();

    await page.getByRole("heading", { name: "Addresses", level: 1 }).waitFor();
    expect((await call("GET", id)).current_version).toBe(1);
  });

  it("are deleted if they were never published", async () => {
    const { page } = visitor;
    await visitor.go("Policies");
    await page.getByRole("link", { name: "New policy" }).click();
    await page.getByLabel("Name").fill("Second thoughts");
    await page.getByLabel("Rule").fill("Does the text give bad advice?");
    await page.getByRole("button", { name: "Save as draft" }).click();
    await page.getByRole("button", { name: "Delete" }).click();
    await visitor.isContent();
    await page.getByRole("button", { name: "Delete policy" }).click();

    await page.getByRole("row", { name: /Card numbers/ }).waitFor();
    expect(await page.getByRole("link", { name: "Second thoughts" }).count()).toBe(0);
  });
});
