/** On what a cap or a limit is set. */

import { useCallback } from "react";
import { type Api, content } from "../../api/client";
import type { Names } from "../../api/names";
import { walkList } from "../../api/walking";
import { SelectField } from "../../ui/fields";
import { Loaded, useLoad } from "../../ui/loading";
import { useSession } from "../../ui/session";

/** At most one of them; neither is the organization. */
export interface Scoped {
  readonly project_id: string | null;
  readonly api_key_id: string | null;
}

export const ORGANIZATION: Scoped = { project_id: null, api_key_id: null };

export function scopeName({ project_id, api_key_id }: Scoped, names: Names): string {
  if (api_key_id !== null) return names.key(api_key_id);
  return project_id !== null ? names.project(project_id) : "The organization";
}

/** The IDs as a body or a query takes them: those that there are. */
export function idsOf({ project_id, api_key_id }: Scoped): {
  project_id?: string;
  api_key_id?: string;
} {
  if (api_key_id !== null) return { api_key_id };
  return project_id === null ? {} : { project_id };
}

interface Choice {
  readonly projectId: string;
  readonly keyId: string;
}

interface ScopeFieldsProperties extends Choice {
  readonly onChoice: (choice: Choice) => void;
}

/** A project and one of its keys; empty for all of them. */
export function ScopeFields({ projectId, keyId, onChoice }: ScopeFieldsProperties) {
  const { admin } = useSession();
  const load = useCallback(
    (signal: AbortSignal) =>
      walkList((query) =>
        content(admin.GET("/manage/v1/organization/projects", { params: { query }, signal })),
      ),
    [admin],
  );
  const projects = useLoad(load);
  return (
    <Loaded of={projects}>
      {({ items }) => (
        <div className="form">
          <SelectField
            label="On"
            value={projectId}
            options={[
              { value: "", title: "The whole organization" },
              ...items
                .filter(({ status }) => status === "active")
                .map(({ id, name }) => ({ value: id, title: `Project ${name}` })),
            ]}
            onValue={(chosen) => onChoice({ projectId: chosen, keyId: "" })}
          />
          {projectId !== "" && (
            <KeyField
              key={projectId}
              admin={admin}
              projectId={projectId}
              keyId={keyId}
              onKey={(chosen) => onChoice({ projectId, keyId: chosen })}
            />
          )}
        </div>
      )}
    </Loaded>
  );
}

interface KeyFieldProperties {
  readonly admin: Api;
  readonly projectId: string;
  readonly keyId: string;
  readonly onKey: (id: string) => void;
}

function KeyField({ admin, projectId, keyId, onKey }: KeyFieldProperties) {
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
  return (
    <Loaded of={keys}>
      {({ items }) => (
        <SelectField
          label="Key"
          value={keyId}
          options={[
            { value: "", title: "All keys together" },
            ...items
              .filter(({ status }) => status === "active" || status === "suspended")
              .map(({ id, name }) => ({ value: id, title: name })),
          ]}
          onValue={onKey}
        />
      )}
    </Loaded>
  );
}

/** What was chosen, as the API names it. */
export function scopedBy({ projectId, keyId }: Choice): Scoped {
  if (keyId !== "") return { project_id: null, api_key_id: keyId };
  return { project_id: projectId === "" ? null : projectId, api_key_id: null };
}
