/** All policies, with what each is doing now. */

import { useCallback } from "react";
import { content } from "../../api/client";
import type { Policy } from "../../api/types";
import { walkList } from "../../api/walking";
import { Badge, Empty, Panel, When } from "../../ui/data";
import { Loaded, useLoad } from "../../ui/loading";
import { go, Link } from "../../ui/navigation";
import { Page } from "../../ui/page";
import { useSession } from "../../ui/session";
import { type Column, Table } from "../../ui/table";
import { DemonstrationNotice, JudgeName } from "./judge";
import { DIRECTIONS, SCOPES, STATE_TONES } from "./words";

const COLUMNS: ReadonlyArray<Column<Policy>> = [
  {
    title: "Name",
    cell: ({ id, name, description }) => (
      <>
        <Link to={{ page: "policy", id }}>{name}</Link>
        {description !== "" && <div className="quiet">{description}</div>}
      </>
    ),
  },
  { title: "State", cell: ({ state }) => <Badge tone={STATE_TONES[state]}>{state}</Badge> },
  { title: "Judges", cell: ({ draft, published }) => DIRECTIONS[(published ?? draft).direction] },
  { title: "Scope", cell: ({ draft, published }) => SCOPES[(published ?? draft).scope] },
  {
    title: "Version",
    cell: ({ current_version, has_unpublished_changes }) => (
      <span className="nobreak">
        {current_version ?? "none"}
        {current_version !== null && has_unpublished_changes && " + changes"}
      </span>
    ),
  },
  { title: "Edited", cell: ({ updated_at }) => <When at={updated_at} /> },
];

export function Policies() {
  const { admin } = useSession();
  const load = useCallback(
    (signal: AbortSignal) =>
      walkList((query) =>
        content(admin.GET("/manage/v1/organization/policies", { params: { query }, signal })),
      ),
    [admin],
  );
  const policies = useLoad(load);
  return (
    <Page
      title="Policies"
      about="A policy is a yes-or-no question about a text. If the answer is yes, a monitoring policy records it and an enforcing policy refuses the request."
      actions={
        <Link to={{ page: "new-policy" }} className="button button-main">
          New policy
        </Link>
      }
    >
      <DemonstrationNotice />
      <Panel title="Policies" actions={<JudgeName />}>
        <Loaded of={policies}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty next={{ title: "Write a policy", run: () => go({ page: "new-policy" }) }}>
                There is no policy yet. A new policy is a draft and has no effect until you publish
                it.
              </Empty>
            ) : (
              <Table caption="Policies" columns={COLUMNS} rows={items} keyOf={({ id }) => id} />
            )
          }
        </Loaded>
      </Panel>
    </Page>
  );
}
