/** What applies, beside the draft; what the draft would change is marked. */

import type { ReactNode } from "react";
import type { Policy, PublishedPolicy } from "../../api/types";
import { Badge, Empty, Panel, When } from "../../ui/data";
import { useNames } from "../../ui/names";
import { DIRECTIONS, MODES, SCOPES, thresholdInWords, yesOrNo } from "./words";

export function Published({ policy }: { policy: Policy }) {
  const { published, draft } = policy;
  if (published === null) {
    return (
      <Panel title="Published">
        <Empty>This policy is not published yet and has no effect.</Empty>
      </Panel>
    );
  }
  const endsEarly = published.ends_answer_early;
  return (
    <Panel
      title={`Published: version ${published.version}`}
      actions={
        <span className="quiet">
          <When at={published.published_at} />
        </span>
      }
    >
      <dl className="facts">
        <Fact title="Rule" isSame={published.rule === draft.rule}>
          <span className="rule">{published.rule}</span>
        </Fact>
        <Fact title="Mode" isSame={published.mode === draft.mode}>
          {MODES[published.mode]}
        </Fact>
        <Fact title="Judges" isSame={published.direction === draft.direction}>
          {DIRECTIONS[published.direction]}
        </Fact>
        <Fact title="Ends answers early" isSame={endsEarly === draft.ends_answer_early}>
          {yesOrNo(endsEarly)}
        </Fact>
        <Fact title="Scope" isSame={hasSameScope(published, policy)}>
          {SCOPES[published.scope]}
          {published.scope === "projects" && <ProjectNames ids={published.project_ids} />}
        </Fact>
        <Fact title="Match from" isSame={hasSameThreshold(published, policy)}>
          {thresholdInWords(published.match_threshold_basis_points)}
        </Fact>
      </dl>
    </Panel>
  );
}

function hasSameScope(published: PublishedPolicy, { draft }: Policy): boolean {
  const isSameList = String(published.project_ids) === String(draft.project_ids);
  return published.scope === draft.scope && isSameList;
}

/** A draft without a threshold gets the gateway's default when it is published. */
function hasSameThreshold(published: PublishedPolicy, { draft }: Policy): boolean {
  const threshold = draft.match_threshold_basis_points;
  return threshold === null || threshold === published.match_threshold_basis_points;
}

interface FactProperties {
  readonly title: string;
  readonly isSame: boolean;
  readonly children: ReactNode;
}

function Fact({ title, isSame, children }: FactProperties) {
  return (
    <>
      <dt>{title}</dt>
      <dd>
        {children} {!isSame && <Badge tone="warn">the draft differs</Badge>}
      </dd>
    </>
  );
}

function ProjectNames({ ids }: { ids: readonly string[] }) {
  const names = useNames();
  return <span>: {ids.map(names.project).join(", ")}</span>;
}
