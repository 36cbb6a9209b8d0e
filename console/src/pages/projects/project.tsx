/** One project: its keys, what applies to it, and its end. */

import { type FormEvent, useCallback, useState } from "react";
import { content } from "../../api/client";
import { forgetNames } from "../../api/names";
import type { Project as ProjectRecord } from "../../api/types";
import { namesIn } from "../../base/lists";
import { Confirmation } from "../../ui/confirmation";
import { Badge, When } from "../../ui/data";
import { Dialog } from "../../ui/dialog";
import { TextField } from "../../ui/fields";
import { FormEnd } from "../../ui/form-end";
import { Loaded, useAct, useLoad } from "../../ui/loading";
import { Link } from "../../ui/navigation";
import { Page } from "../../ui/page";
import { useSession } from "../../ui/session";
import { Effective } from "./effective";
import { Keys } from "./keys";

type Question = "edit" | "archive";

export function Project({ id }: { id: string }) {
  const { admin } = useSession();
  const [asking, ask] = useState<Question | null>(null);
  const load = useCallback(
    (signal: AbortSignal) =>
      content(
        admin.GET("/manage/v1/organization/projects/{project_id}", {
          params: { path: { project_id: id } },
          signal,
        }),
      ),
    [admin, id],
  );
  const project = useLoad(load);
  const close = () => ask(null);
  const isActive = project.value?.status === "active";
  return (
    <Page
      title={project.value?.name ?? "Project"}
      trail={<Link to={{ page: "projects" }}>Projects and keys</Link>}
      actions={
        isActive && (
          <>
            <button type="button" className="button" onClick={() => ask("edit")}>
              Edit
            </button>
            <button type="button" className="button button-grave" onClick={() => ask("archive")}>
              Archive
            </button>
          </>
        )
      }
    >
      <Loaded of={project}>{(value) => <Facts project={value} />}</Loaded>
      <Keys projectId={id} isActive={isActive} />
      <Effective projectId={id} />
      {asking === "edit" && project.value !== null && (
        <Edit project={project.value} onEdited={project.reload} onClose={close} />
      )}
      {asking === "archive" && <Archive id={id} onArchived={project.reload} onClose={close} />}
    </Page>
  );
}

function Facts({ project }: { project: ProjectRecord }) {
  return (
    <dl className="facts">
      <dt>Status</dt>
      <dd>
        <Badge tone={project.status === "active" ? "good" : "plain"}>{project.status}</Badge>
      </dd>
      <dt>Created</dt>
      <dd>
        <When at={project.created_at} />
      </dd>
      {project.archived_at !== null && (
        <>
          <dt>Archived</dt>
          <dd>
            <When at={project.archived_at} />
          </dd>
        </>
      )}
      <dt>Models</dt>
      <dd>{project.allowed_models?.join(", ") ?? "every one"}</dd>
      <dt>ID</dt>
      <dd>
        <code>{project.id}</code>
      </dd>
    </dl>
  );
}

interface EditProperties {
  readonly project: ProjectRecord;
  readonly onEdited: () => void;
  readonly onClose: () => void;
}

function Edit({ project, onEdited, onClose }: EditProperties) {
  const { admin } = useSession();
  const [name, setName] = useState(project.name);
  const [models, setModels] = useState((project.allowed_models ?? []).join(", "));
  const act = useAct();
  const edit = (event: FormEvent) => {
    event.preventDefault();
    act.run(async () => {
      const allowed = namesIn(models);
      await content(
        admin.PATCH("/manage/v1/organization/projects/{project_id}", {
          params: { path: { project_id: project.id } },
          body: { name, allowed_models: allowed.length === 0 ? null : allowed },
        }),
      );
      forgetNames(admin);
      onEdited();
      onClose();
    });
  };
  return (
    <Dialog title="Edit the project" onClose={onClose}>
      <form className="form" onSubmit={edit}>
        <TextField label="Name" value={name} onValue={setName} maxLength={200} required autoFocus />
        <TextField
          label="Only these models (optional)"
          hint="Names, separated by commas. Leave it empty for every model."
          value={models}
          onValue={setModels}
        />
        <FormEnd act={act} verb="Save" onClose={onClose} />
      </form>
    </Dialog>
  );
}

interface ArchiveProperties {
  readonly id: string;
  readonly onArchived: () => void;
  readonly onClose: () => void;
}

function Archive({ id, onArchived, onClose }: ArchiveProperties) {
  const { admin } = useSession();
  const archive = async () => {
    await content(
      admin.POST("/v1/organization/projects/{project_id}/archive", {
        params: { path: { project_id: id } },
      }),
    );
    onArchived();
  };
  return (
    <Confirmation
      title="Archive this project?"
      verb="Archive for good"
      isGrave
      onConfirm={archive}
      onClose={onClose}
    >
      Its keys stop working within a second. This cannot be undone. Its usage stays in reports.
    </Confirmation>
  );
}
