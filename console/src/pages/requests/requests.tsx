/** The latest requests, those that failed, and one by its ID. */

import { type FormEvent, useCallback, useState } from "react";
import { content } from "../../api/client";
import type { RequestRecord } from "../../api/types";
import { Empty, Money, Panel, When } from "../../ui/data";
import { Choices, type Option, TextField } from "../../ui/fields";
import { go, Link, useChoice } from "../../ui/navigation";
import { Page } from "../../ui/page";
import { Paged } from "../../ui/paged";
import { useSession } from "../../ui/session";
import { type Column, Table } from "../../ui/table";
import { duration } from "./timing";
import { Failing, StatusBadge } from "./words";

const PAGE_SIZE = 50;

type Wanted = "all" | "5xx" | "4xx";

const WANTED: ReadonlyArray<Option<Wanted>> = [
  { value: "all", title: "All" },
  { value: "5xx", title: "Failed: 5xx" },
  { value: "4xx", title: "Refused: 4xx" },
];

export function Requests() {
  const [wanted, want] = useChoice(
    "status",
    WANTED.map(({ value }) => value),
    "all",
  );
  return (
    <Page title="Requests" about="The outcome of each request. Prompts and answers are not stored.">
      <Finder />
      <Panel
        title="Latest requests"
        actions={<Choices label="Status" value={wanted} options={WANTED} onValue={want} />}
      >
        <Latest wanted={wanted} />
      </Panel>
    </Page>
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

const COLUMNS: ReadonlyArray<Column<RequestRecord>> = [
  {
    title: "When",
    cell: ({ id, created_at }) => (
      <Link to={{ page: "request", id }}>
        <When at={created_at} />
      </Link>
    ),
  },
  { title: "Status", cell: ({ status }) => <StatusBadge status={status} /> },
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

function Latest({ wanted }: { wanted: Wanted }) {
  const { admin } = useSession();
  const read = useCallback(
    (after: string | null, signal?: AbortSignal) => {
      const query = {
        limit: PAGE_SIZE,
        ...(wanted === "all" ? {} : { status: wanted }),
        ...(after === null ? {} : { after }),
      };
      return content(
        admin.GET("/manage/v1/organization/requests", {
          params: { query },
          ...(signal === undefined ? {} : { signal }),
        }),
      );
    },
    [admin, wanted],
  );
  return (
    <Paged read={read}>
      {(rows) =>
        rows.length === 0 ? (
          <Empty>There is no such request.</Empty>
        ) : (
          <Table caption="Latest requests" columns={COLUMNS} rows={rows} keyOf={({ id }) => id} />
        )
      }
    </Paged>
  );
}
