/** Another threshold on what was judged, without the texts. */

import { useCallback, useId, useState } from "react";
import { content } from "../../api/client";
import type { PublishedPolicy } from "../../api/types";
import { count } from "../../base/counts";
import { lastDays } from "../../base/days";
import { Empty, Panel } from "../../ui/data";
import { Choices } from "../../ui/fields";
import { Loaded, useLoad } from "../../ui/loading";
import { useChoice } from "../../ui/navigation";
import { useNow } from "../../ui/now";
import { useSession } from "../../ui/session";
import { Histogram } from "./histogram";
import {
  BASIS_POINTS_MAX,
  onScale,
  STEP_BASIS_POINTS,
  type Tally,
  tallyOf,
  type WouldMatch,
  wouldMatch,
  wouldMatchInWords,
} from "./scores";
import { inPercent } from "./words";

const RANGES = [
  { value: "7", title: "7 days" },
  { value: "30", title: "30 days" },
  { value: "90", title: "90 days" },
] as const;

interface PastScoresProperties {
  readonly policyId: string;
  readonly published: PublishedPolicy | null;
  /** What the draft holds now; null where it holds none. */
  readonly drafted: number | null;
  readonly onThreshold: (basisPoints: number) => void;
}

export function PastScores({ policyId, published, drafted, onThreshold }: PastScoresProperties) {
  const [days, choose] = useChoice(
    "days",
    RANGES.map(({ value }) => value),
    "30",
  );
  if (published === null) {
    return (
      <Panel title="Past scores">
        <Empty>There are no scores yet: the policy is not published.</Empty>
      </Panel>
    );
  }
  return (
    <Panel
      title={`Past scores of version ${published.version}`}
      actions={<Choices label="Range" value={days} options={RANGES} onValue={choose} />}
    >
      <Scores
        key={published.version}
        policyId={policyId}
        published={published}
        days={Number(days)}
        drafted={drafted}
        onThreshold={onThreshold}
      />
    </Panel>
  );
}

interface ScoresProperties extends PastScoresProperties {
  readonly published: PublishedPolicy;
  readonly days: number;
}

function Scores({ policyId, published, days, drafted, onThreshold }: ScoresProperties) {
  const { admin } = useSession();
  const now = useNow();
  const load = useCallback(
    async (signal: AbortSignal) => {
      const page = await content(
        admin.GET("/manage/v1/organization/policies/{policy_id}/rollups", {
          params: {
            path: { policy_id: policyId },
            query: { start_time: lastDays(days, now).start },
          },
          signal,
        }),
      );
      return tallyOf(page.data, published.version);
    },
    [admin, policyId, published.version, days, now],
  );
  const tally = useLoad(load);
  const [threshold, setThreshold] = useState(published.match_threshold_basis_points);
  return (
    <Loaded of={tally}>
      {(known) => (
        <div className="form">
          <Trial
            tally={known}
            threshold={threshold}
            published={published.match_threshold_basis_points}
            isDrafted={drafted === threshold}
            onThreshold={setThreshold}
            onTake={() => onThreshold(threshold)}
          />
          <Outcomes tally={known} days={days} />
        </div>
      )}
    </Loaded>
  );
}

interface TrialProperties {
  readonly tally: Tally;
  readonly threshold: number;
  readonly published: number;
  readonly isDrafted: boolean;
  readonly onThreshold: (basisPoints: number) => void;
  readonly onTake: () => void;
}

function Trial({ tally, threshold, published, isDrafted, onThreshold, onTake }: TrialProperties) {
  const id = useId();
  const found = wouldMatch(tally.scoreCounts, threshold);
  const words = wouldMatchInWords(found);
  if (found.scored === 0) return <Empty>This version has no scores in this period.</Empty>;
  return (
    <>
      <div className="scale">
        <Histogram scoreCounts={tally.scoreCounts} threshold={threshold} published={published} />
        <input
          id={id}
          type="range"
          min={0}
          max={BASIS_POINTS_MAX}
          step={STEP_BASIS_POINTS}
          value={threshold}
          aria-valuetext={`${inPercent(threshold)}. ${words}`}
          onChange={(event) => onThreshold(onScale(Number(event.target.value)))}
        />
        <div className="scale-ends quiet" aria-hidden="true">
          <span>0 %: certainly no</span>
          <span>100 %: certainly yes</span>
        </div>
      </div>
      <div className="row row-apart">
        <div>
          <label htmlFor={id} className="legend">
            Match from {inPercent(threshold)}
          </label>
          <p>
            <span className="swatch swatch-match" /> {words}
          </p>
          <Cut found={found} threshold={threshold} />
          {threshold !== published && (
            <p className="quiet">The dashed line is what is published, {inPercent(published)}.</p>
          )}
        </div>
        <div className="row">
          <button
            type="button"
            className="button"
            disabled={threshold === published}
            onClick={() => onThreshold(published)}
          >
            Back to {inPercent(published)}
          </button>
          <button type="button" className="button" disabled={isDrafted} onClick={onTake}>
            Use it in the draft
          </button>
        </div>
      </div>
    </>
  );
}

/** Said where the figure is no single one, since nobody would guess why. */
function Cut({ found, threshold }: { found: WouldMatch; threshold: number }) {
  const unsure = found.highest - found.lowest;
  if (unsure === 0) return null;
  return (
    <p className="quiet">
      Scores are stored in steps of 1 %, so {count(unsure)} of them may be on either side of{" "}
      {inPercent(threshold)}.
    </p>
  );
}

function Outcomes({ tally, days }: { tally: Tally; days: number }) {
  const { matches, noMatches, failures, skipped } = tally;
  return (
    <p className="footnote">
      <span>In the last {days} days:</span>
      <span>{count(matches)} matched</span>
      <span>{count(noMatches)} did not</span>
      <span>{count(failures)} could not be judged</span>
      <span>{count(skipped)} needed no answer</span>
    </p>
  );
}
