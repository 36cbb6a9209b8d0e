/** What the policy found: matches, and what could not be judged. */

import { useCallback } from "react";
import { content } from "../../api/client";
import type { PolicyDecision } from "../../api/types";
import { Badge, Empty, Panel, When } from "../../ui/data";
import { useNames } from "../../ui/names";
import { Link } from "../../ui/navigation";
import { Paged } from "../../ui/paged";
import { useSession } from "../../ui/session";
import { type Column, Table } from "../../ui/table";
import { useIsDemonstration } from "./judge";
import { ScoreBar } from "./score-bar";
import { actionInWords, failureInWords, JUDGED } from "./words";

const PAGE_SIZE = 10;

const COLUMNS: ReadonlyArray<Column<PolicyDecision>> = [
  {
    title: "When",
    cell: ({ request_id, created_at }) => (
      <Link to={{ page: "request", id: request_id }}>
        <When at={created_at} />
      </Link>
    ),
  },
  { title: "Judged", cell: ({ direction }) => JUDGED[direction] },
  { title: "Outcome", cell: (decision) => <Outcome decision={decision} /> },
  { title: "Score", cell: (decision) => <Score decision={decision} /> },
  { title: "Version", cell: ({ version }) => version, isNumeric: true },
  { title: "Key", cell: (decision) => <Caller decision={decision} /> },
];

export function Decisions({ policyId }: { policyId: string }) {
  const { admin } = useSession();
  const read = useCallback(
    (after: string | null, signal?: AbortSignal) =>
      content(
        admin.GET("/manage/v1/organization/policies/{policy_id}/decisions", {
          params: {
            path: { policy_id: policyId },
            query: { limit: PAGE_SIZE, ...(after === null ? {} : { after }) },
          },
          ...(signal === undefined ? {} : { signal }),
        }),
      ),
    [admin, policyId],
  );
  return (
    <Panel title="Decisions" actions={<span className="quiet">Texts are not stored.</span>}>
      <Paged read={read}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty>There are no matches and no failures yet.</Empty>
          ) : (
            <Table
              caption="Matches and failures, newest first"
              columns={COLUMNS}
              rows={rows}
              keyOf={({ id }) => id}
            />
          )
        }
      </Paged>
    </Panel>
  );
}

function Outcome({ decision }: { decision: PolicyDecision }) {
  const { tone, words } = actionInWords(decision);
  return (
    <span className="row">
      <Badge tone={tone}>{decision.outcome === "match" ? "match" : "not judged"}</Badge>
      <span className="quiet">{words}</span>
    </span>
  );
}

function Score({ decision }: { decision: PolicyDecision }) {
  const isDemonstration = useIsDemonstration();
  const { outcome, score_basis_points, match_threshold_basis_points, reason } = decision;
  if (outcome === "failed" || score_basis_points === null) {
    return <span className="quiet">{failureInWords(reason, isDemonstration)}</span>;
  }
  return <ScoreBar score={score_basis_points} threshold={match_threshold_basis_points} />;
}

function Caller({ decision }: { decision: PolicyDecision }) {
  const names = useNames();
  return (
    <>
      {names.key(decision.api_key_id)}{" "}
      <span className="quiet">of {names.project(decision.project_id)}</span>
    </>
  );
}
