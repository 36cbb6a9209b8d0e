/** The audit log: who changed what, when, and on which object. */

import { useCallback, useEffect, useState } from "react";
import { type Api, content } from "../../api/client";
import { Failure } from "../../api/failure";
import type { AuditChange, AuditEntry } from "../../api/types";
import { walkList } from "../../api/walking";
import { moment } from "../../base/days";
import { Empty, Panel, When } from "../../ui/data";
import { useNames } from "../../ui/names";
import { Link } from "../../ui/navigation";
import { Page } from "../../ui/page";
import { Paged } from "../../ui/paged";
import { useSession } from "../../ui/session";
import { type Column, Table } from "../../ui/table";
import { actionInWords, fieldInWords, limitInWords, noun, valueInWords } from "./words";

const PAGE_SIZE = 25;
const SHOWN_OF_ID = 8;
const POLICY = "policy";

export function Audit() {
  const { admin } = useSession();
  const read = useCallback(
    (after: string | null, signal?: AbortSignal) =>
      content(
        admin.GET("/manage/v1/organization/audit", {
          params: { query: { limit: PAGE_SIZE, ...(after === null ? {} : { after }) } },
          ...(signal === undefined ? {} : { signal }),
        }),
      ),
    [admin],
  );
  const nameOf = useResourceNames();
  return (
    <Page
      title="Audit log"
      about="Every change in this organization, newest first. Entries are never changed."
    >
      <Panel title="Changes">
        <Paged read={read}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty>There are no entries yet. Each change of the organization adds one.</Empty>
            ) : (
              <Table
                caption="Changes"
                columns={columns(nameOf)}
                rows={rows}
                keyOf={({ id }) => id}
              />
            )
          }
        </Paged>
      </Panel>
    </Page>
  );
}

type NameOf = (type: string, id: string) => string;

function columns(nameOf: NameOf): ReadonlyArray<Column<AuditEntry>> {
  return [
    { title: "When", cell: ({ occurred_at }) => <When at={occurred_at} /> },
    { title: "Who", cell: ({ actor }) => <Actor actor={actor} nameOf={nameOf} /> },
    { title: "What", cell: (entry) => actionInWords(entry) },
    { title: "On", cell: ({ resource }) => <Resource resource={resource} nameOf={nameOf} /> },
    { title: "Changes", cell: (entry) => <Details entry={entry} /> },
  ];
}

interface ActorProperties {
  readonly actor: AuditEntry["actor"];
  readonly nameOf: NameOf;
}

function Actor({ actor, nameOf }: ActorProperties) {
  if (actor.type === "operator" || actor.id === null) return "Operator";
  if (actor.type === "person") {
    return (
      <span className="anywhere" title={actor.id}>
        {actor.name ?? actor.id}
      </span>
    );
  }
  return <span className="anywhere">{nameOf("admin_api_key", actor.id)}</span>;
}

interface ResourceProperties {
  readonly resource: AuditEntry["resource"];
  readonly nameOf: NameOf;
}

function Resource({ resource, nameOf }: ResourceProperties) {
  const { type, id } = resource;
  const name = nameOf(type, id);
  if (type === "project") return <Link to={{ page: "project", id }}>{name}</Link>;
  if (type === POLICY) return <Link to={{ page: "policy", id }}>{name}</Link>;
  return (
    <span className="anywhere" title={id}>
      {name}
    </span>
  );
}

function Details({ entry }: { entry: AuditEntry }) {
  const { changes, occurred_at, request_id } = entry;
  return (
    <details>
      <summary>{summaryOf(changes)}</summary>
      <dl className="changes">
        {changes.map((change) => (
          <Change key={change.field} change={change} />
        ))}
        <dt>when</dt>
        <dd>{moment(occurred_at)}</dd>
        {request_id !== null && (
          <>
            <dt>request ID</dt>
            <dd>
              <code className="anywhere">{request_id}</code>
            </dd>
          </>
        )}
      </dl>
    </details>
  );
}

function summaryOf(changes: readonly AuditChange[]): string {
  return changes.length === 1 ? "1 field" : `${changes.length} fields`;
}

function Change({ change: { field, before, after } }: { change: AuditChange }) {
  return (
    <>
      <dt>{fieldInWords(field)}</dt>
      <dd>
        {before !== null && <>{valueInWords(field, before)} → </>}
        {valueInWords(field, after)}
      </dd>
    </>
  );
}

/** Names of projects, keys and policies that still exist; others are shown by the end of the ID. */
function useResourceNames(): NameOf {
  const { admin } = useSession();
  const names = useNames();
  const [others, setOthers] = useState<ReadonlyMap<string, string>>(new Map());
  useEffect(() => {
    let isWanted = true;
    readOtherNames(admin).then((read) => {
      if (isWanted) setOthers(read);
    });
    return () => {
      isWanted = false;
    };
  }, [admin]);
  return (type, id) => {
    if (type === "project") return names.project(id);
    if (type === "project_api_key") return names.key(id);
    if (type === "spending_limit" || type === "rate_limit") return limitInWords(id, names);
    return others.get(id) ?? `${noun(type)} …${id.slice(-SHOWN_OF_ID)}`;
  };
}

async function readOtherNames(admin: Api): Promise<ReadonlyMap<string, string>> {
  const keys = readable(() =>
    walkList((query) =>
      content(admin.GET("/v1/organization/admin_api_keys", { params: { query } })),
    ),
  );
  const policies = readable(() =>
    walkList((query) =>
      content(admin.GET("/manage/v1/organization/policies", { params: { query } })),
    ),
  );
  const found = [...(await keys), ...(await policies)];
  return new Map(found.map(({ id, name }) => [id, name]));
}

interface NamedItem {
  readonly id: string;
  readonly name: string;
}

/** Return nothing for a key that may not read this list. */
async function readable(
  read: () => Promise<{ items: readonly NamedItem[] }>,
): Promise<readonly NamedItem[]> {
  try {
    return (await read()).items;
  } catch (thrown) {
    if (thrown instanceof Failure) return [];
    throw thrown;
  }
}
