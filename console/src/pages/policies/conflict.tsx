/** Somebody else was faster: what they changed, beside what was changed here. */

import { useNames } from "../../ui/names";
import { type Column, Table } from "../../ui/table";
import { type Difference, type Draft, differences, type FieldName } from "./drafting";
import { yesOrNo } from "./words";

const TITLES: Readonly<Record<FieldName, string>> = {
  name: "Name",
  description: "Description",
  rule: "Rule",
  direction: "Judges",
  endsEarly: "Ends answers early",
  mode: "Mode",
  scope: "Scope",
  projectIds: "Projects",
  threshold: "Match from (%)",
};

interface ConflictProperties {
  readonly before: Draft;
  readonly theirs: Draft;
  readonly mine: Draft;
  readonly onTheirs: () => void;
  readonly onMine: () => void;
}

export function Conflict({ before, theirs, mine, onTheirs, onMine }: ConflictProperties) {
  const names = useNames();
  const found = differences(before, theirs, mine);
  const text = (value: Draft[FieldName] | null) => {
    if (value === null) return <span className="quiet">not changed</span>;
    if (typeof value === "boolean") return yesOrNo(value);
    const words = typeof value === "string" ? value : value.map(names.project).join(", ");
    return words === "" ? <span className="quiet">empty</span> : words;
  };
  const columns: ReadonlyArray<Column<Difference>> = [
    { title: "Field", cell: ({ field }) => TITLES[field] },
    { title: "Before", cell: (difference) => text(difference.before) },
    { title: "Theirs", cell: ({ theirs: value }) => text(value) },
    { title: "Yours", cell: ({ mine: value }) => text(value) },
  ];
  return (
    <div className="notice notice-warn conflict" role="alert">
      <h3>This policy was changed elsewhere</h3>
      {found.length === 0 ? (
        <p>The draft has not changed. The policy was published, paused or resumed.</p>
      ) : (
        <Table
          caption="Changes since you opened it"
          columns={columns}
          rows={found}
          keyOf={({ field }) => field}
        />
      )}
      <div className="row">
        <button type="button" className="button button-small" onClick={onTheirs}>
          Use their draft
        </button>
        <button type="button" className="button button-small" onClick={onMine}>
          Keep my edits
        </button>
      </div>
    </div>
  );
}
