/** The Admin keys of the organization: create, narrow and revoke them. */

import { Fragment, useCallback, useState } from "react";
import { content } from "../../api/client";
import type { AdminKey } from "../../api/types";
import { walkList } from "../../api/walking";
import type { Instant } from "../../base/days";
import { Badge, Empty, Panel, When } from "../../ui/data";
import { Loaded, useLoad } from "../../ui/loading";
import { useNow } from "../../ui/now";
import { Page } from "../../ui/page";
import { useSession } from "../../ui/session";
import { type Column, Table } from "../../ui/table";
import { NarrowAdminKey, RevokeAdminKey } from "./change-admin-key";
import { CreateAdminKey } from "./create-admin-key";
import { hasAll } from "./permissions";

type Verb = "narrow" | "revoke";

interface Asked {
  readonly verb: Verb;
  readonly apiKey: AdminKey;
}

const TITLES: Readonly<Record<Verb, string>> = {
  narrow: "Reduce permissions of",
  revoke: "Revoke",
};
const DIALOGS = { narrow: NarrowAdminKey, revoke: RevokeAdminKey } as const;

export function AdminKeys() {
  const { admin, redactedAdminKey } = useSession();
  const now = useNow();
  const [isCreating, setCreating] = useState(false);
  const [asked, ask] = useState<Asked | null>(null);
  const load = useCallback(
    (signal: AbortSignal) =>
      walkList((query) =>
        content(admin.GET("/v1/organization/admin_api_keys", { params: { query }, signal })),
      ),
    [admin],
  );
  const keys = useLoad(load);
  const isOwn = ({ redacted_value }: AdminKey) => redacted_value === redactedAdminKey;
  const Change = asked === null ? null : DIALOGS[asked.verb];
  return (
    <Page
      title="Admin keys"
      about="People and programs administer this organization with Admin keys. Applications call models with the keys of a project instead."
      actions={
        <button type="button" className="button button-main" onClick={() => setCreating(true)}>
          New Admin key
        </button>
      }
    >
      <Panel title="Admin keys">
        <Loaded of={keys}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty next={{ title: "Create an Admin key", run: () => setCreating(true) }}>
                Every Admin key is revoked.
              </Empty>
            ) : (
              <Table
                caption="Admin keys"
                columns={columns(isOwn, now, ask)}
                rows={items}
                keyOf={({ id }) => id}
              />
            )
          }
        </Loaded>
      </Panel>
      {isCreating && <CreateAdminKey onCreated={keys.reload} onClose={() => setCreating(false)} />}
      {asked !== null && Change !== null && (
        <Change
          apiKey={asked.apiKey}
          isOwn={isOwn(asked.apiKey)}
          onChanged={keys.reload}
          onClose={() => ask(null)}
        />
      )}
    </Page>
  );
}

function columns(
  isOwn: (key: AdminKey) => boolean,
  now: Instant,
  ask: (asked: Asked) => void,
): ReadonlyArray<Column<AdminKey>> {
  return [
    {
      title: "Name",
      cell: (key) => (
        <>
          <span className="anywhere">
            {key.name} {isOwn(key) && <Badge tone="good">you</Badge>}
          </span>
          <br />
          <code className="quiet">{key.redacted_value}</code>
        </>
      ),
    },
    { title: "Permissions", cell: ({ permissions }) => <Permissions held={permissions} /> },
    { title: "Last used", cell: ({ last_used_at }) => <When at={last_used_at} /> },
    { title: "Expires", cell: ({ expires_at }) => <Expiry at={expires_at} now={now} /> },
    { title: "", cell: (apiKey) => <Actions apiKey={apiKey} now={now} ask={ask} /> },
  ];
}

function Permissions({ held }: { held: readonly string[] }) {
  if (hasAll(held)) return <span className="nobreak">everything</span>;
  return held.map((permission) => (
    <Fragment key={permission}>
      <code className="nobreak">{permission}</code>{" "}
    </Fragment>
  ));
}

function isExpired(at: Instant | null, now: Instant): boolean {
  return at !== null && at <= now;
}

function Expiry({ at, now }: { at: Instant | null; now: Instant }) {
  return (
    <>
      {isExpired(at, now) && <Badge tone="plain">expired</Badge>} <When at={at} />
    </>
  );
}

interface ActionsProperties {
  readonly apiKey: AdminKey;
  readonly now: Instant;
  readonly ask: (asked: Asked) => void;
}

/** A key with one permission cannot lose any: it is revoked instead. */
function Actions({ apiKey, now, ask }: ActionsProperties) {
  const canNarrow = apiKey.permissions.length > 1 && !isExpired(apiKey.expires_at, now);
  const verbs: readonly Verb[] = canNarrow ? ["narrow", "revoke"] : ["revoke"];
  return (
    <div className="row row-end">
      {verbs.map((verb) => (
        <button
          key={verb}
          type="button"
          className="button button-plain"
          aria-label={`${TITLES[verb]} ${apiKey.name}`}
          onClick={() => ask({ verb, apiKey })}
        >
          {verb === "narrow" ? "Reduce permissions" : TITLES[verb]}
        </button>
      ))}
    </div>
  );
}
