/** A request as a row of the list. */

import type { RequestRecord } from "../../api/types";
import { exactMoment, shortDay, timeOfDay } from "../../base/days";
import { Money } from "../../ui/data";
import { useNames } from "../../ui/names";
import { Link } from "../../ui/navigation";
import type { Column } from "../../ui/table";
import { duration } from "./timing";
import { Failing, StatusBadge } from "./words";

export const COLUMNS: ReadonlyArray<Column<RequestRecord>> = [
  {
    title: "When (UTC)",
    cell: ({ id, created_at }) => (
      <Link to={{ page: "request", id }}>
        <time
          className="nobreak"
          dateTime={new Date(created_at * 1000).toISOString()}
          title={exactMoment(created_at)}
        >
          {shortDay(created_at)}, {timeOfDay(created_at)}
        </time>
      </Link>
    ),
  },
  { title: "Status", cell: ({ status }) => <StatusBadge status={status} /> },
  { title: "Project", cell: ({ project_id }) => <ProjectName id={project_id} /> },
  { title: "Key", cell: ({ api_key_id }) => <KeyName id={api_key_id} /> },
  {
    title: "Model",
    cell: ({ model, operation }) =>
      model === null ? (
        <code className="quiet">{operation}</code>
      ) : (
        <span className="anywhere">{model}</span>
      ),
  },
  { title: "Failed by", cell: (record) => <Failing record={record} /> },
  {
    title: "Tokens",
    cell: ({ tokens }) =>
      tokens.output === null
        ? "–"
        : `${(tokens.input ?? 0) + (tokens.cached_input ?? 0)} + ${tokens.output}`,
    isNumeric: true,
  },
  {
    title: "Cost",
    cell: ({ cost }) => (cost === null ? "not known" : <Money of={cost.value} />),
    isNumeric: true,
  },
  { title: "Took", cell: ({ timings }) => duration(timings.total_ms), isNumeric: true },
];

function ProjectName({ id }: { id: string }) {
  return <span title={id}>{useNames().project(id)}</span>;
}

function KeyName({ id }: { id: string }) {
  return <span title={id}>{useNames().key(id)}</span>;
}
