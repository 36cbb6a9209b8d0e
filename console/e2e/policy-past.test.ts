import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { enter, type Visitor } from "./visitor";

const COUNT = new Intl.NumberFormat("en-US");
let visitor: Visitor;
let scoreCounts: number[];

beforeAll(async () => {
  visitor = await enter();
  scoreCounts = await pastScores();
});
afterAll(() => visitor.leave());

/** How many scores there were in each hundredth in the last thirty days, without the console. */
async function pastScores(): Promise<number[]> {
  const { base_url, judging_policy_id, admin_key } = inject("told");
  const midnight = new Date().setUTCHours(0, 0, 0, 0) / 1000;
  const answer = await fetch(
    `${base_url}/manage/v1/organization/policies/${judging_policy_id}/rollups?start_time=${midnight - 29 * 86_400}`,
    { headers: { authorization: `Bearer ${admin_key}` } },
  );
  const { data } = (await answer.json()) as { data: { score_counts: number[] }[] };
  return Array.from({ length: 100 }, (_, bin) => total(data.map((day) => day.score_counts[bin])));
}

function total(counts: ReadonlyArray<number | undefined>): number {
  return counts.reduce<number>((sum, each) => sum + (each ?? 0), 0);
}

function matched(from: number): string {
  return COUNT.format(total(scoreCounts.slice(from)));
}

describe("past scores", () => {
  it("say what the published threshold would have matched", async () => {
    const { page } = visitor;
    await visitor.go("Policies");
    await page.getByRole("link", { name: "Card numbers" }).click();
    const scores = page.getByRole("region", { name: "Past scores of version 1" });

    await scores.getByRole("img", { name: `${matched(0)} scores in steps of 1 %` }).waitFor();
    await scores.getByText(`Would have matched ${matched(80)} of ${matched(0)}`).waitFor();
    await scores.getByText("1 could not be judged").waitFor();
    await visitor.isContent();
  });

  it("answer to a slider that is moved with keys", async () => {
    const { page } = visitor;
    const scores = page.getByRole("region", { name: "Past scores of version 1" });
    const slider = scores.getByRole("slider", { name: "Match from" });
    await slider.focus();

    await page.keyboard.press("ArrowRight");
    await scores
      .getByText(`Would have matched between ${matched(81)} and ${matched(80)} of ${matched(0)}`)
      .waitFor();
    await scores.getByText("may be on either side of 80.5 %").waitFor();
    await page.keyboard.press("ArrowRight");
    await scores.getByText(`Would have matched ${matched(81)} of ${matched(0)}`).waitFor();
    await page.keyboard.press("End");

    expect(await slider.getAttribute("aria-valuetext")).toMatch(/^99\.5 %\. Would have matched/);
    await visitor.isContent();
  });

  it("hand a threshold to the draft, and go back", async () => {
    const { page } = visitor;
    const scores = page.getByRole("region", { name: "Past scores of version 1" });

    await scores.getByRole("button", { name: "Use it in the draft" }).click();

    expect(await page.getByLabel("Match from (%)").inputValue()).toBe("99.5");
    expect(await page.getByRole("button", { name: "Save draft" }).isEnabled()).toBe(true);
    await scores.getByRole("button", { name: "Back to 80 %" }).click();
    await scores.getByText(`Would have matched ${matched(80)} of`).waitFor();
    await page.getByRole("button", { name: "Discard edits" }).click();
    expect(await page.getByLabel("Match from (%)").inputValue()).toBe("80");
  });

  it("are those of the days that were chosen", async () => {
    const { page } = visitor;
    const scores = page.getByRole("region", { name: "Past scores of version 1" });

    await scores.getByRole("radio", { name: "7 days" }).check();

    await scores.getByText("In the last 7 days:").waitFor();
    await scores.getByText(`of ${matched(0)}`).waitFor({ state: "detached" });
    await visitor.isContent();
  });

  it("are none before something was judged", async () => {
    const { page } = visitor;
    await visitor.go("Policies");
    await page.getByRole("link", { name: "Competitor names" }).click();
    await page.getByText("There are no scores yet").waitFor();
    await page.getByText("There are no matches and no failures yet").waitFor();
    await visitor.isContent();

    await visitor.go("Policies");
    await page.getByRole("link", { name: /addresses/i }).click();
    await page.getByText("This version has no scores in this period.").waitFor();
    await visitor.isContent();
  });
});

describe("decisions", () => {
  it("are listed with score, threshold and what became of it", async () => {
    const { page } = visitor;
    await visitor.go("Policies");
    await page.getByRole("link", { name: "Card numbers" }).click();
    const decisions = page.getByRole("region", { name: "Decisions" });

    await decisions
      .getByRole("row", { name: /Request match refused .*97 %.* Crawler of Search/ })
      .first()
      .waitFor();
    await decisions.getByRole("img", { name: "Score 97 %, a match from 80 %" }).first().waitFor();
    await decisions
      .getByRole("row", { name: /not judged refused the judge said neither yes nor no/ })
      .waitFor();
    await visitor.isContent();
  });

  it("go on with older ones", async () => {
    const { page } = visitor;
    const rows = page.getByRole("region", { name: "Decisions" }).getByRole("row");
    expect(await rows.count()).toBe(11);

    await page.getByRole("button", { name: "Show older ones" }).click();

    await page.getByRole("button", { name: "Show older ones" }).waitFor({ state: "detached" });
    // Other walks of the same organization may have added to the two that the example leaves.
    expect(await rows.count()).toBeGreaterThanOrEqual(13);
  });

  it("lead to the request", async () => {
    const { page } = visitor;
    const decisions = page.getByRole("region", { name: "Decisions" });

    await decisions.getByRole("row", { name: /match/ }).first().getByRole("link").click();

    await page.getByRole("heading", { name: "Request", level: 1 }).waitFor();
    await page.getByText("policy_violation").waitFor();
    await visitor.isContent();
  });
});
