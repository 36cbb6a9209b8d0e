/** The keys of a project: made, renewed, held back and ended here. */

import { useCallback, useState } from "react";
import { content } from "../../api/client";
import type { ProjectKey } from "../../api/types";
import { walkList } from "../../api/walking";
import { moment } from "../../base/days";
import { Confirmation } from "../../ui/confirmation";
import { Empty, Panel } from "../../ui/data";
import { Loaded, useLoad } from "../../ui/loading";
import { useSession } from "../../ui/session";
import { Table } from "../../ui/table";
import { SetCap } from "../limits/set-cap";
import { useSpending } from "../limits/spending";
import { CreateKey } from "./create-key";
import { CreateKeys } from "./create-keys";
import { type Asked, keyColumns, TITLES, type Verb } from "./key-columns";
import { RotateKey } from "./rotate-key";

export function Keys({ projectId, isActive }: { projectId: string; isActive: boolean }) {
  const { admin } = useSession();
  const [making, make] = useState<"one" | "many" | null>(null);
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
  const spending = useSpending("api_key_id");
  const reload = () => {
    keys.reload();
    spending.reload();
  };
  return (
    <Panel
      title="Keys"
      actions={
        isActive && (
          <>
            <button type="button" className="button" onClick={() => make("many")}>
              Several keys
            </button>
            <button type="button" className="button button-main" onClick={() => make("one")}>
              New key
            </button>
          </>
        )
      }
    >
      <Loaded of={keys}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty next={isActive ? { title: "Create a key", run: () => make("one") } : undefined}>
              There is no key yet. An application needs one to call models.
            </Empty>
          ) : (
            <Table
              caption="Keys"
              columns={keyColumns(projectId, spending.value, ask)}
              rows={items}
              keyOf={({ id }) => id}
            />
          )
        }
      </Loaded>
      {making === "one" && (
        <CreateKey projectId={projectId} onCreated={reload} onClose={() => make(null)} />
      )}
      {making === "many" && (
        <CreateKeys projectId={projectId} onCreated={reload} onClose={() => make(null)} />
      )}
      {asked !== null && (
        <Answer projectId={projectId} asked={asked} onDone={reload} onClose={() => ask(null)} />
      )}
    </Panel>
  );
}

interface AnswerProperties {
  readonly projectId: string;
  readonly asked: Asked;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** The dialog of what was asked for. */
function Answer({ projectId, asked: { verb, key, cap }, onDone, onClose }: AnswerProperties) {
  switch (verb) {
    case "rotate":
      return <RotateKey projectId={projectId} apiKey={key} onRotated={onDone} onClose={onClose} />;
    case "cap":
      return (
        <SetCap
          cap={cap ?? null}
          scope={{ project_id: null, api_key_id: key.id }}
          onSet={onDone}
          onClose={onClose}
        />
      );
    default:
      return (
        <ChangeKey
          projectId={projectId}
          apiKey={key}
          verb={verb}
          onChanged={onDone}
          onClose={onClose}
        />
      );
  }
}

interface ChangeKeyProperties {
  readonly projectId: string;
  readonly apiKey: ProjectKey;
  readonly verb: Exclude<Verb, "rotate" | "cap">;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

function consequences(verb: ChangeKeyProperties["verb"], key: ProjectKey): string {
  switch (verb) {
    case "suspend":
      return "The key stops working within a second. You can resume it.";
    case "resume":
      return "The key works again within a second, with the same value and permissions.";
    case "revoke":
      return "The key stops working within a second. This cannot be undone.";
    case "end_previous":
      return `The old value would work until ${moment(key.previous_value_expires_at ?? 0)}. It stops working within a second; the new value works on.`;
  }
}

function ChangeKey({ projectId, apiKey, verb, onChanged, onClose }: ChangeKeyProperties) {
  const { admin } = useSession();
  const isFinal = verb === "revoke" || verb === "end_previous";
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
      isGrave={isFinal}
      onConfirm={change}
      onClose={onClose}
    >
      {consequences(verb, apiKey)}
    </Confirmation>
  );
}
