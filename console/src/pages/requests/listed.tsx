/** The requests that were asked for, as they are or as they come. */

import { type ReactNode, useCallback, useMemo } from "react";
import { type Api, content } from "../../api/client";
import type { RequestRecord } from "../../api/types";
import type { Instant } from "../../base/days";
import { Empty } from "../../ui/data";
import { Waiting } from "../../ui/loading";
import { go } from "../../ui/navigation";
import { useNow } from "../../ui/now";
import { Paged } from "../../ui/paged";
import { Refusal } from "../../ui/refusal";
import { useSession } from "../../ui/session";
import { Table } from "../../ui/table";
import { COLUMNS } from "./columns";
import { FILTERS, type Query, queryOf, type Want, type Wanted } from "./filters";
import { useLive } from "./live";

const PAGE_SIZE = 50;
/** Each looks at up to ten thousand requests. */
const SEARCHES_MAX = 10;

interface ListedProperties {
  readonly wanted: Wanted;
  readonly want: Want;
  readonly isLive: boolean;
}

export function Listed({ wanted, want, isLive }: ListedProperties) {
  const { admin } = useSession();
  const now = useNow();
  const text = JSON.stringify(queryOf(wanted, now));
  const query: Query = useMemo(() => JSON.parse(text), [text]);
  const rows = (found: readonly RequestRecord[]) =>
    found.length === 0 ? <Nothing wanted={wanted} want={want} /> : <Rows rows={found} />;
  return isLive ? (
    <LiveList key={text} admin={admin} query={query}>
      {rows}
    </LiveList>
  ) : (
    <Latest admin={admin} query={query}>
      {rows}
    </Latest>
  );
}

interface ListProperties {
  readonly admin: Api;
  readonly query: Query;
  readonly children: (rows: readonly RequestRecord[]) => ReactNode;
}

function Latest({ admin, query, children }: ListProperties) {
  const read = useCallback(
    (after: string | null, signal?: AbortSignal) =>
      search(admin, { ...query, ...(after === null ? {} : { after }) }, signal),
    [admin, query],
  );
  return <Paged read={read}>{children}</Paged>;
}

function LiveList({ admin, query, children }: ListProperties) {
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
      {rows === null ? failure === null && <Waiting /> : children(rows)}
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
  return <Table caption="Latest requests" columns={COLUMNS} rows={rows} keyOf={({ id }) => id} />;
}

/** Why the list is empty decides what to do next. */
function Nothing({ wanted, want }: Omit<ListedProperties, "isLive">) {
  const isNarrowed = wanted.outcome !== "all" || FILTERS.some((name) => wanted[name] !== "");
  if (isNarrowed) {
    const clear = () => go({ page: "requests", search: { range: wanted.range } });
    return (
      <Empty next={{ title: "Clear the filters", run: clear }}>
        No request of this range matches the filters.
      </Empty>
    );
  }
  if (wanted.range !== "30d") {
    return (
      <Empty next={{ title: "Show 30 days", run: () => want("range", "30d") }}>
        There is no request in this range.
      </Empty>
    );
  }
  return (
    <Empty next={{ title: "Open the playground", run: () => go({ page: "playground" }) }}>
      There is no request yet. Ask a model something, and its request is listed here.
    </Empty>
  );
}
