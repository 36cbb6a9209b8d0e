/** A request as a row of the list. */

import type { RequestRecord } from "../../api/types";
import { exactMoment, shortDay, timeOfDay } from "../../base/days";
import { Clipped, Money } from "../../ui/data";
import { useNames } from "../../ui/names";
import { Link } from "../../ui/navigation";
import type { Column } from "../../ui/table";
import { duration } from "./timing";
import { Ending, StatusBadge } from "./words";

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
  { title: "Project and key", cell: (record) => <KeyName record={record} /> },
  {
    title: "Model",
    cell: ({ model, operation }) =>
      model === null ? (
        <code className="quiet">
          <Clipped text={operation} title={operation} />
        </code>
      ) : (
        <Clipped text={model} title={model} />
      ),
  },
  { title: "Outcome", cell: (record) => <Ending record={record} /> },
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

function KeyName({ record: { project_id, api_key_id } }: { record: RequestRecord }) {
  const names = useNames();
  const text = `${names.project(project_id)} / ${names.key(api_key_id)}`;
  return <Clipped text={text} title={api_key_id} />;
}
