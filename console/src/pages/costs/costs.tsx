/** What was spent, by day and by whoever spent it. */

import { lazy, Suspense, useCallback, useEffect, useMemo } from "react";
import { type Api, answer, content } from "../../api/client";
import type { CostBucket } from "../../api/types";
import { walkReport } from "../../api/walking";
import { isoDay, longDay, type Span } from "../../base/days";
import { share, shown } from "../../base/money";
import { DAYS_MAX, RANGES, spanOf } from "../../base/ranges";
import { SERIES_COLOURS, seriesName } from "../../ui/colours";
import { Count, Empty, Money, Panel } from "../../ui/data";
import { download } from "../../ui/download";
import { Choices, type Option, TextField } from "../../ui/fields";
import { Loaded, useAct, useLoad, Waiting } from "../../ui/loading";
import { useNames } from "../../ui/names";
import { go, useChoice, useText } from "../../ui/navigation";
import { useNow } from "../../ui/now";
import { Page } from "../../ui/page";
import { Refusal } from "../../ui/refusal";
import { useSession } from "../../ui/session";
import { type Column, Table } from "../../ui/table";
import {
  type Breakdown,
  breakdown,
  costsAsCsv,
  DIMENSIONS,
  type Group,
  type Grouping,
  gathered,
} from "./breakdown";
import { type GroupUsage, readUsage } from "./usage";

const loadChart = () => import("./chart");
const Chart = lazy(loadChart);

const BUCKETS_MAX = 180;
const GROUPINGS: ReadonlyArray<Option<Grouping>> = [
  { value: "project", title: "By project" },
  { value: "key", title: "By key" },
  { value: "model", title: "By model" },
  { value: "line_item", title: "By line item" },
];
const TITLES = {
  project: "Project",
  key: "Key",
  model: "Model",
  line_item: "Line item",
} as const;

export function Costs() {
  const now = useNow();
  const [range, setRange] = useChoice(
    "range",
    RANGES.map(({ value }) => value),
    "30d",
  );
  const [by, setBy] = useChoice(
    "by",
    GROUPINGS.map(({ value }) => value),
    "project",
  );
  const [from, setFrom] = useText("from");
  const [to, setTo] = useText("to");
  // While the report is on its way, so that the chart is not awaited after it.
  useEffect(() => {
    loadChart();
  }, []);
  const span = useMemo(() => spanOf(range, now, from, to), [range, now, from, to]);
  return (
    <Page title="Costs" about="Settled costs by UTC day.">
      <div className="bar">
        <Choices label="Range" value={range} options={RANGES} onValue={setRange} />
        <Choices label="Grouping" value={by} options={GROUPINGS} onValue={setBy} />
      </div>
      {range === "custom" && (
        <div className="bar">
          <TextField label="From" type="date" value={from} onValue={setFrom} />
          <TextField label="To" type="date" value={to} onValue={setTo} />
        </div>
      )}
      {span === null ? (
        <Empty>Choose two days, the first one first, at most {DAYS_MAX} days apart.</Empty>
      ) : (
        <Report span={span} by={by} />
      )}
    </Page>
  );
}

/** What was asked for stays with the answer: a newer question may be under way. */
interface Costing {
  readonly span: Span;
  readonly by: Grouping;
  readonly buckets: readonly CostBucket[];
  /** Requests and tokens, where models are told apart. */
  readonly usage: ReadonlyMap<string, GroupUsage> | null;
  readonly unsettled: number;
}

async function readCosts(
  admin: Api,
  span: Span,
  by: Grouping,
  signal: AbortSignal,
): Promise<Costing> {
  let unsettled = 0;
  const used = by === "model" ? readUsage(admin, span, signal) : null;
  const buckets = await walkReport(async (cursor) => {
    const query = {
      start_time: span.start,
      end_time: span.end,
      group_by: [...DIMENSIONS[by]],
      limit: BUCKETS_MAX,
      ...cursor,
    };
    const { data, headers } = await answer(
      admin.GET("/v1/organization/costs", { params: { query }, signal }),
    );
    unsettled = Number(headers.get("x-tollhouse-unsettled-requests") ?? "0");
    return data;
  });
  return { span, by, buckets, usage: await used, unsettled };
}

function Report({ span, by }: { span: Span; by: Grouping }) {
  const { admin } = useSession();
  const load = useCallback(
    (signal: AbortSignal) => readCosts(admin, span, by, signal),
    [admin, span, by],
  );
  const costs = useLoad(load);
  return (
    <Loaded of={costs}>
      {(value) => (
        <div className="stack">
          {value.unsettled > 0 && <Unsettled requests={value.unsettled} />}
          <Costed costs={value} />
        </div>
      )}
    </Loaded>
  );
}

function Unsettled({ requests }: { requests: number }) {
  return (
    <p className="notice notice-warn">
      <span>
        <Count of={requests} /> {requests === 1 ? "request has" : "requests have"} no final cost
        yet. The amounts below do not include {requests === 1 ? "it" : "them"}.
      </span>
    </p>
  );
}

function Costed({ costs }: { costs: Costing }) {
  const names = useNames();
  const { span, by, buckets, usage } = costs;
  const broken = useMemo(() => breakdown(buckets, by, names), [buckets, by, names]);
  const drawn = useMemo(() => gathered(broken.groups, SERIES_COLOURS), [broken]);
  const days = `${longDay(span.start)} to ${longDay(span.end - 1)}`;
  if (broken.groups.length === 0) {
    return (
      <Panel title="Costs by day">
        <Empty next={{ title: "Open the playground", run: () => go({ page: "playground" }) }}>
          Nothing was settled from {days}. A request that a model answered is settled within
          seconds.
        </Empty>
      </Panel>
    );
  }
  return (
    <>
      <Panel title="Costs by day" actions={<span className="quiet">{days}</span>}>
        <Suspense fallback={<Waiting />}>
          <Chart
            days={broken.days}
            groups={drawn}
            label={`Costs by day, ${days}, ${shown(broken.total)} in total; the table has the details`}
          />
        </Suspense>
      </Panel>
      <Panel
        title={`Costs by ${TITLES[by].toLowerCase()}`}
        actions={
          <>
            <button
              type="button"
              className="button button-small"
              onClick={() => save(broken, by, span)}
            >
              Download CSV
            </button>
            <FocusExport span={span} />
          </>
        }
      >
        <Groups broken={broken} by={by} drawn={drawn.length} usage={usage} />
      </Panel>
    </>
  );
}

/** All line items of the range, in the format that tools of finance read. */
function FocusExport({ span }: { span: Span }) {
  const { admin } = useSession();
  const act = useAct();
  const save = () =>
    act.run(async () => {
      const query = { start_time: span.start, end_time: span.end };
      const file = await content(
        admin.GET("/manage/v1/organization/costs/focus", { params: { query }, parseAs: "blob" }),
      );
      const name = `focus-costs-${isoDay(span.start)}-${isoDay(span.end - 1)}.csv`;
      download(name, file, "text/csv;charset=utf-8");
    });
  return (
    <>
      <button type="button" className="button button-small" disabled={act.isBusy} onClick={save}>
        Export FOCUS
      </button>
      {act.failure !== null && <Refusal failure={act.failure} onRetry={save} />}
    </>
  );
}

function save(broken: Breakdown, by: Grouping, { start, end }: Span): void {
  const name = `costs-by-${by}-${isoDay(start)}-${isoDay(end - 1)}.csv`;
  download(name, costsAsCsv(broken, by), "text/csv;charset=utf-8");
}

interface GroupsProperties {
  readonly broken: Breakdown;
  readonly by: Grouping;
  readonly drawn: number;
  readonly usage: ReadonlyMap<string, GroupUsage> | null;
}

function usageColumns(usage: ReadonlyMap<string, GroupUsage> | null): ReadonlyArray<Column<Group>> {
  if (usage === null) return [];
  const column = (title: string, field: Exclude<keyof GroupUsage, "amount">): Column<Group> => ({
    title,
    cell: ({ id }) => <Count of={usage.get(id)?.[field] ?? 0} />,
    isNumeric: true,
  });
  return [
    column("Requests", "requests"),
    column("Input", "input"),
    column("Cached input", "cachedInput"),
    column("Output", "output"),
  ];
}

function Groups({ broken, by, drawn, usage }: GroupsProperties) {
  const places = new Map(broken.groups.map(({ id }, index) => [id, Math.min(index, drawn - 1)]));
  const columns: ReadonlyArray<Column<Group>> = [
    {
      title: TITLES[by],
      cell: ({ id, name, detail }) => (
        <span>
          <span className={`swatch ${seriesName(places.get(id) ?? 0)}`} /> {name}{" "}
          {detail !== "" && <span className="quiet">{detail}</span>}
        </span>
      ),
    },
    ...usageColumns(usage),
    {
      title: "Share",
      cell: ({ total }) => `${(share(total, broken.total) * 100).toFixed(1)} %`,
      isNumeric: true,
    },
    { title: "Amount", cell: ({ total }) => <Money of={total} />, isNumeric: true },
  ];
  return (
    <Table
      caption={`Costs by ${TITLES[by].toLowerCase()}`}
      columns={columns}
      rows={broken.groups}
      keyOf={({ id }) => id}
      foot={
        <tr>
          <th scope="row">Total</th>
          {columns.slice(2).map(({ title }) => (
            <td key={title} data-label="" />
          ))}
          <td data-label="" className="right">
            <Money of={broken.total} />
          </td>
        </tr>
      }
    />
  );
}
