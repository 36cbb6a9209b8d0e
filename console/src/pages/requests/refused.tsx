/** Which policies refused a request, and what every policy decided about it. */

import type { RequestDetails } from "../../api/types";
import { Badge, Panel } from "../../ui/data";
import { Link } from "../../ui/navigation";
import { type Column, Table } from "../../ui/table";
import { useIsDemonstration } from "../policies/judge";
import { ScoreBar } from "../policies/score-bar";
import { failureInWords, inPercent, JUDGED, OUTCOMES } from "../policies/words";
import { duration } from "./timing";

type Blocking = RequestDetails["blocked_by"][number];
type Evaluation = RequestDetails["evaluations"][number];
type Decision = Evaluation["decisions"][number];
type Judgement = Decision & Pick<Evaluation, "direction" | "mode" | "judging_ms">;

const POLICY: Column<Pick<Judgement, "id" | "name" | "version">> = {
  title: "Policy",
  cell: ({ id, name, version }) => (
    <>
      <Link to={{ page: "policy", id }}>{name}</Link> <span className="quiet">v{version}</span>{" "}
      <code className="quiet anywhere">{id}</code>
    </>
  ),
};

const REFUSALS: ReadonlyArray<Column<Blocking>> = [
  POLICY,
  { title: "Judged", cell: ({ direction }) => JUDGED[direction] },
  { title: "Why", cell: (policy) => <Why policy={policy} /> },
];

export function RefusedBy({ policies }: { policies: readonly Blocking[] }) {
  if (policies.length === 0) return null;
  return (
    <Panel title="Refused by policy">
      <Table
        caption="Policies that refused the request"
        columns={REFUSALS}
        rows={policies}
        keyOf={({ id, direction }) => `${id} ${direction}`}
      />
    </Panel>
  );
}

/** Score 90 %, and a match begins at 80 %; or why there is no score. */
function Why({ policy }: { policy: Blocking }) {
  const isDemonstration = useIsDemonstration();
  const { outcome, score_basis_points: score, match_threshold_basis_points: threshold } = policy;
  if (outcome === "failed" || score === null) return failureInWords(policy.reason, isDemonstration);
  return `Score ${inPercent(score)}, threshold ${inPercent(threshold)}`;
}

const JUDGEMENTS: ReadonlyArray<Column<Judgement>> = [
  POLICY,
  { title: "Judged", cell: ({ direction }) => JUDGED[direction] },
  { title: "Mode", cell: ({ mode }) => mode },
  { title: "Outcome", cell: (judgement) => <Outcome judgement={judgement} /> },
  { title: "Score", cell: (judgement) => <Score judgement={judgement} /> },
  { title: "Judging took", cell: ({ judging_ms }) => duration(judging_ms), isNumeric: true },
];

export function Judgements({ evaluations }: { evaluations: readonly Evaluation[] }) {
  const rows = evaluations.flatMap(({ decisions, direction, mode, judging_ms }) =>
    decisions.map((decision) => ({ ...decision, direction, mode, judging_ms })),
  );
  if (rows.length === 0) return null;
  return (
    <Panel
      title="Policies"
      actions={<span className="quiet">Policies of one mode are judged together.</span>}
    >
      <Table
        caption="What every policy decided"
        columns={JUDGEMENTS}
        rows={rows}
        keyOf={({ id, direction, mode }) => `${id} ${direction} ${mode}`}
      />
    </Panel>
  );
}

function Outcome({ judgement: { outcome } }: { judgement: Judgement }) {
  if (outcome === "skipped") return <Badge tone="plain">not needed</Badge>;
  const { tone, words } = OUTCOMES[outcome];
  return <Badge tone={tone}>{words}</Badge>;
}

function Score({ judgement }: { judgement: Judgement }) {
  const isDemonstration = useIsDemonstration();
  const { outcome, score_basis_points: score, match_threshold_basis_points: threshold } = judgement;
  if (outcome === "failed")
    return <span className="quiet">{failureInWords(judgement.reason, isDemonstration)}</span>;
  if (score === null) return <span className="quiet">–</span>;
  return <ScoreBar score={score} threshold={threshold} />;
}
