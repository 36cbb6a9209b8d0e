/** The latest requests, by filter or live, and one by its ID. */

import { type FormEvent, useCallback, useMemo, useState } from "react";
import { type Api, content } from "../../api/client";
import type { RequestRecord } from "../../api/types";
import { DAY_SECONDS, type Instant } from "../../base/days";
import { Count, Empty, Panel } from "../../ui/data";
import { CheckField, Choices, type Option, TextField } from "../../ui/fields";
import { Loaded, useLoad, Waiting } from "../../ui/loading";
import { go, useChoice, useText } from "../../ui/navigation";
import { useNow } from "../../ui/now";
import { Page } from "../../ui/page";
import { Paged } from "../../ui/paged";
import { Refusal } from "../../ui/refusal";
import { useSession } from "../../ui/session";
import { Table } from "../../ui/table";
import { COLUMNS } from "./columns";
import { FilterBar } from "./filter-bar";
import { type Query, queryOf, STATUSES, type Wanted } from "./filters";
import { useLive } from "./live";

const PAGE_SIZE = 50;
/** Each looks at up to ten thousand requests. */
const SEARCHES_MAX = 10;

const STATUS_OPTIONS: ReadonlyArray<Option<Wanted["status"]>> = [
  { value: "all", title: "All" },
  { value: "2xx", title: "2xx" },
  { value: "4xx", title: "4xx" },
  { value: "5xx", title: "5xx" },
];

export function Requests() {
  const [wanted, want] = useWanted();
  const [isLive, setLive] = useState(false);
  const hasEnd = wanted.to !== "";
  return (
    <Page title="Requests" about="The outcome of each request. Prompts and answers are not stored.">
      <Finder />
      <LastDay />
      <Panel
        title="Latest requests"
        actions={
          <>
            <CheckField
              label="Live"
              isChecked={isLive && !hasEnd}
              onValue={setLive}
              disabled={hasEnd}
            />
            <Choices
              label="Status"
              value={wanted.status}
              options={STATUS_OPTIONS}
              onValue={(value) => want("status", value)}
            />
          </>
        }
      >
        <div className="stack">
          <FilterBar wanted={wanted} want={want} />
          <Listed wanted={wanted} isLive={isLive && !hasEnd} />
        </div>
      </Panel>
    </Page>
  );
}

/** The filters, which are part of the address. */
function useWanted(): [Wanted, (name: keyof Wanted, value: string) => void] {
  const [status, setStatus] = useChoice("status", STATUSES, "all");
  const [project, setProject] = useText("project");
  const [key, setKey] = useText("key");
  const [model, setModel] = useText("model");
  const [code, setCode] = useText("code");
  const [policy, setPolicy] = useText("policy");
  const [from, setFrom] = useText("from");
  const [to, setTo] = useText("to");
  const setters: Readonly<Record<keyof Wanted, (value: string) => void>> = {
    status: (value) => setStatus(STATUSES.find((known) => known === value) ?? "all"),
    project: setProject,
    key: setKey,
    model: setModel,
    code: setCode,
    policy: setPolicy,
    from: setFrom,
    to: setTo,
  };
  const wanted = { status, project, key, model, code, policy, from, to };
  return [wanted, (name, value) => setters[name](value)];
}

/** All requests of the last day: what failed is the service's, the rest of it the callers'. */
function LastDay() {
  const { admin } = useSession();
  const now = useNow();
  const load = useCallback(
    (signal: AbortSignal) =>
      content(
        admin.GET("/manage/v1/organization/request_rollups", {
          params: { query: { start_time: now - DAY_SECONDS } },
          signal,
        }),
      ),
    [admin, now],
  );
  const report = useLoad(load);
  return (
    <Panel title="Last 24 hours">
      <Loaded of={report}>
        {({ data }) => {
          const results = data.flatMap((bucket) => bucket.results);
          const total = (of: "requests" | "failed" | "client_errors") =>
            results.reduce((sum, result) => sum + result[of], 0);
          return (
            <dl className="facts">
              <dt>Requests</dt>
              <dd>
                <Count of={total("requests")} />
              </dd>
              <dt>Failed</dt>
              <dd>
                <Count of={total("failed")} />{" "}
                <span className="quiet">faults of the gateway or of a model’s engine</span>
              </dd>
              <dt>Client errors</dt>
              <dd>
                <Count of={total("client_errors")} />{" "}
                <span className="quiet">mistakes of callers, refusals and disconnects</span>
              </dd>
            </dl>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function Finder() {
  const [id, setId] = useState("");
  const find = (event: FormEvent) => {
    event.preventDefault();
    if (id.trim() !== "") go({ page: "request", id: id.trim() });
  };
  return (
    <form className="bar finder" onSubmit={find}>
      <TextField
        label="Request ID"
        placeholder="The X-Request-ID of the response"
        value={id}
        onValue={setId}
        spellCheck={false}
        autoComplete="off"
      />
      <button type="submit" className="button">
        Look it up
      </button>
    </form>
  );
}

function Listed({ wanted, isLive }: { wanted: Wanted; isLive: boolean }) {
  const { admin } = useSession();
  const text = JSON.stringify(queryOf(wanted));
  const query: Query = useMemo(() => JSON.parse(text), [text]);
  return isLive ? (
    <LiveList key={text} admin={admin} query={query} />
  ) : (
    <Latest admin={admin} query={query} />
  );
}

interface ListProperties {
  readonly admin: Api;
  readonly query: Query;
}

function Latest({ admin, query }: ListProperties) {
  const read = useCallback(
    (after: string | null, signal?: AbortSignal) =>
      search(admin, { ...query, ...(after === null ? {} : { after }) }, signal),
    [admin, query],
  );
  return <Paged read={read}>{(rows) => <Rows rows={rows} />}</Paged>;
}

function LiveList({ admin, query }: ListProperties) {
  const read = useCallback(
    (start: Instant | null, signal: AbortSignal) => {
      const start_time = Math.max(start ?? 0, query.start_time ?? 0);
      return search(admin, { ...query, ...(start_time === 0 ? {} : { start_time }) }, signal);
    },
    [admin, query],
  );
  const { rows, failure } = useLive(read);
  return (
    <>
      {failure !== null && <Refusal failure={failure} />}
      {rows === null ? failure === null && <Waiting /> : <Rows rows={rows} />}
    </>
  );
}

/** One page of the API looks at a part of all requests, and may find none in it. */
async function search(admin: Api, query: Query & { after?: string }, signal?: AbortSignal) {
  let page = await readPage(admin, query, signal);
  for (let count = 1; count < SEARCHES_MAX; count++) {
    if (page.data.length > 0 || !page.has_more || page.last_id === null) break;
    page = await readPage(admin, { ...query, after: page.last_id }, signal);
  }
  return page;
}

function readPage(admin: Api, query: Query & { after?: string }, signal?: AbortSignal) {
  return content(
    admin.GET("/manage/v1/organization/requests", {
      params: { query: { limit: PAGE_SIZE, ...query } },
      ...(signal === undefined ? {} : { signal }),
    }),
  );
}

function Rows({ rows }: { rows: readonly RequestRecord[] }) {
  if (rows.length === 0) return <Empty>There is no such request.</Empty>;
  return <Table caption="Latest requests" columns={COLUMNS} rows={rows} keyOf={({ id }) => id} />;
}
