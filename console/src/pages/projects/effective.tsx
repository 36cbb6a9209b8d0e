/** The policies that apply to every request of a project. */

import { useCallback } from "react";
import { content } from "../../api/client";
import type { EffectivePolicy } from "../../api/types";
import { Badge, Empty, Panel } from "../../ui/data";
import { Loaded, useLoad } from "../../ui/loading";
import { Link } from "../../ui/navigation";
import { useSession } from "../../ui/session";
import { type Column, Table } from "../../ui/table";
import { DIRECTIONS, SCOPES } from "../policies/words";

const COLUMNS: ReadonlyArray<Column<EffectivePolicy>> = [
  {
    title: "Policy",
    cell: ({ id, name }) => <Link to={{ page: "policy", id }}>{name}</Link>,
  },
  {
    title: "Mode",
    cell: ({ mode }) => <Badge tone={mode === "enforcing" ? "good" : "plain"}>{mode}</Badge>,
  },
  { title: "Judges", cell: ({ direction }) => DIRECTIONS[direction] },
  { title: "Scope", cell: ({ scope }) => SCOPES[scope] },
  { title: "Version", cell: ({ version }) => version, isNumeric: true },
];

export function Effective({ projectId }: { projectId: string }) {
  const { admin } = useSession();
  const load = useCallback(
    (signal: AbortSignal) =>
      content(
        admin.GET("/v1/organization/projects/{project_id}/effective_policies", {
          params: { path: { project_id: projectId } },
          signal,
        }),
      ),
    [admin, projectId],
  );
  const policies = useLoad(load);
  return (
    <Panel title="Policies that apply here">
      <Loaded of={policies}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty>No published policy applies to all requests of this project.</Empty>
          ) : (
            <Table
              caption="Policies that apply here"
              columns={COLUMNS}
              rows={data}
              keyOf={({ id }) => id}
            />
          )
        }
      </Loaded>
    </Panel>
  );
}
