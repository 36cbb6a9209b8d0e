/** The keys of a project: made, renewed, held back and ended here. */

import { Fragment, useCallback, useState } from "react";
import { content } from "../../api/client";
import type { ProjectKey } from "../../api/types";
import { walkList } from "../../api/walking";
import { Confirmation } from "../../ui/confirmation";
import { Badge, Empty, Panel, When } from "../../ui/data";
import { Loaded, useLoad } from "../../ui/loading";
import { useSession } from "../../ui/session";
import { type Column, Table } from "../../ui/table";
import { CreateKey } from "./create-key";
import { CreateKeys } from "./create-keys";
import { RotateKey } from "./rotate-key";

const TONES = { active: "good", suspended: "warn", revoked: "plain", expired: "plain" } as const;

type Verb = "rotate" | "suspend" | "resume" | "revoke";

interface Asked {
  readonly verb: Verb;
  readonly key: ProjectKey;
}

export function Keys({ projectId, isActive }: { projectId: string; isActive: boolean }) {
  const { admin } = useSession();
  const [isCreating, setCreating] = useState(false);
  const [isMany, setMany] = useState(false);
  const [asked, ask] = useState<Asked | null>(null);
  const load = useCallback(
    (signal: AbortSignal) =>
      walkList((query) =>
        content(
          admin.GET("/manage/v1/organization/projects/{project_id}/api_keys", {
            params: { path: { project_id: projectId }, query },
            signal,
          }),
        ),
      ),
    [admin, projectId],
  );
  const keys = useLoad(load);
  const columns = [...COLUMNS, actions(ask)];
  return (
    <Panel
      title="Keys"
      actions={
        isActive && (
          <>
            <button type="button" className="button" onClick={() => setMany(true)}>
              Keys for names
            </button>
            <button type="button" className="button button-main" onClick={() => setCreating(true)}>
              New key
            </button>
          </>
        )
      }
    >
      <Loaded of={keys}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty>There is no key yet. Create one, so that an application can call models.</Empty>
          ) : (
            <Table caption="Keys" columns={columns} rows={items} keyOf={({ id }) => id} />
          )
        }
      </Loaded>
      {isCreating && (
        <CreateKey
          projectId={projectId}
          onCreated={keys.reload}
          onClose={() => setCreating(false)}
        />
      )}
      {isMany && (
        <CreateKeys projectId={projectId} onCreated={keys.reload} onClose={() => setMany(false)} />
      )}
      {asked?.verb === "rotate" && (
        <RotateKey
          projectId={projectId}
          apiKey={asked.key}
          onRotated={keys.reload}
          onClose={() => ask(null)}
        />
      )}
      {asked !== null && asked.verb !== "rotate" && (
        <ChangeKey
          projectId={projectId}
          apiKey={asked.key}
          verb={asked.verb}
          onChanged={keys.reload}
          onClose={() => ask(null)}
        />
      )}
    </Panel>
  );
}

const COLUMNS: ReadonlyArray<Column<ProjectKey>> = [
  {
    title: "Name",
    cell: ({ name, redacted_value }) => (
      <>
        <span className="anywhere">{name}</span>
        <br />
        <code className="quiet">{redacted_value}</code>
      </>
    ),
  },
  { title: "Status", cell: ({ status }) => <Badge tone={TONES[status]}>{status}</Badge> },
  { title: "Last used", cell: ({ last_used_at }) => <When at={last_used_at} /> },
  { title: "Expires", cell: ({ expires_at }) => <When at={expires_at} /> },
  { title: "May", cell: (key) => <Allowed apiKey={key} /> },
];

function Allowed({ apiKey }: { apiKey: ProjectKey }) {
  const models = apiKey.allowed_models;
  return (
    <>
      {apiKey.permissions.map((permission) => (
        <Fragment key={permission}>
          <code className="nobreak">{permission}</code>{" "}
        </Fragment>
      ))}
      {models !== null && <div className="quiet anywhere">only {models.join(", ")}</div>}
    </>
  );
}

function actions(ask: (asked: Asked) => void): Column<ProjectKey> {
  return {
    title: "",
    cell: (key) => (
      <div className="row row-end">
        {verbsOf(key.status).map((verb) => (
          <button
            key={verb}
            type="button"
            className="button button-plain"
            aria-label={`${TITLES[verb]} ${key.name}`}
            onClick={() => ask({ verb, key })}
          >
            {TITLES[verb]}
          </button>
        ))}
      </div>
    ),
  };
}

const TITLES: Readonly<Record<Verb, string>> = {
  rotate: "Rotate",
  suspend: "Suspend",
  resume: "Resume",
  revoke: "Revoke",
};

function verbsOf(status: ProjectKey["status"]): readonly Verb[] {
  if (status === "active") return ["rotate", "suspend", "revoke"];
  return status === "suspended" ? ["resume", "revoke"] : [];
}

interface ChangeKeyProperties {
  readonly projectId: string;
  readonly apiKey: ProjectKey;
  readonly verb: Exclude<Verb, "rotate">;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

const CONSEQUENCES = {
  suspend: "The key stops working within a second. You can resume it.",
  resume: "The key works again within a second, with the same value and permissions.",
  revoke: "The key stops working within a second. This cannot be undone.",
} as const;

function ChangeKey({ projectId, apiKey, verb, onChanged, onClose }: ChangeKeyProperties) {
  const { admin } = useSession();
  const change = async () => {
    const path = { project_id: projectId, api_key_id: apiKey.id };
    await content(
      admin.POST(`/manage/v1/organization/projects/{project_id}/api_keys/{api_key_id}/${verb}`, {
        params: { path },
      }),
    );
    onChanged();
  };
  return (
    <Confirmation
      title={`${TITLES[verb]} “${apiKey.name}”?`}
      verb={verb === "revoke" ? "Revoke for good" : TITLES[verb]}
      isGrave={verb === "revoke"}
      onConfirm={change}
      onClose={onClose}
    >
      {CONSEQUENCES[verb]}
    </Confirmation>
  );
}
