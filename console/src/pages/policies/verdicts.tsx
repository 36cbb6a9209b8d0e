/** What a judge said of a text, of the draft and of what is published side by side. */

import type { PolicyVerdict } from "../../api/types";
import { Badge } from "../../ui/data";
import { useIsDemonstration } from "./judge";
import { ScoreBar } from "./score-bar";
import { failureInWords, inPercent, OUTCOMES } from "./words";

const TITLES: Readonly<Record<PolicyVerdict["of"], { short: string; whole: string }>> = {
  draft: { short: "Draft", whole: "By the draft" },
  published: { short: "Published", whole: "By the published version" },
};

interface VerdictsProperties {
  readonly of: readonly PolicyVerdict[];
  /** The text or the rule is another one by now. */
  readonly isOld: boolean;
}

export function Verdicts({ of, isOld }: VerdictsProperties) {
  return (
    <div className="verdicts">
      {of.map((verdict) => (
        <Verdict key={verdict.of} verdict={verdict} />
      ))}
      {isOld && <p className="note">The text or the rule has changed since this test.</p>}
    </div>
  );
}

function Verdict({ verdict }: { verdict: PolicyVerdict }) {
  const isDemonstration = useIsDemonstration();
  const title = TITLES[verdict.of];
  const { tone, words } = OUTCOMES[verdict.outcome];
  const { score_basis_points: score, threshold_basis_points: threshold } = verdict;
  return (
    <section className="verdict" aria-label={title.whole}>
      <h3>{title.short}</h3>
      <Badge tone={tone}>{words}</Badge>
      {score !== null && <ScoreBar score={score} threshold={threshold} />}
      <p className="note">
        {verdict.outcome === "failed"
          ? `There is no verdict: ${failureInWords(verdict.reason, isDemonstration)}.`
          : `A match from ${inPercent(threshold)}.`}
        {boundsInWords(verdict)}
      </p>
    </section>
  );
}

/** What a judge leaves unsaid could move the score so far. */
function boundsInWords({ lowest_basis_points, highest_basis_points }: PolicyVerdict): string {
  if (lowest_basis_points === null || highest_basis_points === null) return "";
  if (lowest_basis_points === highest_basis_points) return "";
  const [low, high] = [inPercent(lowest_basis_points), inPercent(highest_basis_points)];
  return ` The score is between ${low} and ${high}.`;
}
