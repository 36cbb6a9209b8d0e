/** How sure the judge was, with a mark where a match begins. */

import { BASIS_POINTS_MAX } from "./scores";
import { inPercent } from "./words";

interface ScoreBarProperties {
  readonly score: number;
  readonly threshold: number | null;
}

export function ScoreBar({ score, threshold }: ScoreBarProperties) {
  const from = threshold === null ? "" : `, a match from ${inPercent(threshold)}`;
  const isMatch = threshold !== null && score >= threshold;
  return (
    <span className="score">
      <span className="score-track" role="img" aria-label={`Score ${inPercent(score)}${from}`}>
        <span
          className={isMatch ? "score-fill score-match" : "score-fill"}
          style={{ width: along(score) }}
        />
        {threshold !== null && <span className="score-mark" style={{ left: along(threshold) }} />}
      </span>
      <span className="number" aria-hidden="true">
        {inPercent(score)}
      </span>
    </span>
  );
}

function along(basisPoints: number): string {
  return `${(basisPoints / BASIS_POINTS_MAX) * 100}%`;
}
