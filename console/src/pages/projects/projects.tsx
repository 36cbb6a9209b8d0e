/** All projects, and the way to a new one. */

import { type FormEvent, useCallback, useState } from "react";
import { content, idempotencyKey } from "../../api/client";
import { forgetNames } from "../../api/names";
import type { Project } from "../../api/types";
import { walkList } from "../../api/walking";
import { Badge, Empty, Panel, When } from "../../ui/data";
import { Dialog } from "../../ui/dialog";
import { TextField } from "../../ui/fields";
import { FormEnd } from "../../ui/form-end";
import { Loaded, useAct, useLoad } from "../../ui/loading";
import { go, Link } from "../../ui/navigation";
import { Page } from "../../ui/page";
import { useSession } from "../../ui/session";
import { type Column, Table } from "../../ui/table";
import { useSpending } from "../limits/spending";
import { spendingColumns } from "../limits/spending-columns";

const COLUMNS: ReadonlyArray<Column<Project>> = [
  {
    title: "Name",
    cell: ({ id, name }) => <Link to={{ page: "project", id }}>{name}</Link>,
  },
  {
    title: "Status",
    cell: ({ status }) => <Badge tone={status === "active" ? "good" : "plain"}>{status}</Badge>,
  },
  { title: "Created", cell: ({ created_at }) => <When at={created_at} /> },
];

export function Projects() {
  const { admin } = useSession();
  const [isCreating, setCreating] = useState(false);
  const load = useCallback(
    (signal: AbortSignal) =>
      walkList((query) =>
        content(admin.GET("/manage/v1/organization/projects", { params: { query }, signal })),
      ),
    [admin],
  );
  const projects = useLoad(load);
  const spending = useSpending("project_id").value;
  const columns = [...COLUMNS, ...spendingColumns<Project>(spending)];
  return (
    <Page
      title="Projects and keys"
      about="A project has keys. Applications call models with them, and costs are reported by project and key."
      actions={
        <button type="button" className="button button-main" onClick={() => setCreating(true)}>
          New project
        </button>
      }
    >
      <Panel title="Projects">
        <Loaded of={projects}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty next={{ title: "Create a project", run: () => setCreating(true) }}>
                There is no project yet. A project has the keys by which applications call models.
              </Empty>
            ) : (
              <Table caption="Projects" columns={columns} rows={items} keyOf={({ id }) => id} />
            )
          }
        </Loaded>
      </Panel>
      {isCreating && <CreateProject onClose={() => setCreating(false)} />}
    </Page>
  );
}

function CreateProject({ onClose }: { onClose: () => void }) {
  const { admin } = useSession();
  const [name, setName] = useState("");
  const [key] = useState(idempotencyKey);
  const act = useAct();
  const create = (event: FormEvent) => {
    event.preventDefault();
    act.run(async () => {
      const project = await content(
        admin.POST("/manage/v1/organization/projects", {
          params: { header: { "Idempotency-Key": key } },
          body: { name },
        }),
      );
      forgetNames(admin);
      go({ page: "project", id: project.id });
    });
  };
  return (
    <Dialog title="New project" onClose={onClose}>
      <form className="form" onSubmit={create}>
        <TextField
          label="Name"
          hint="Names need not be unique, and can be changed."
          value={name}
          onValue={setName}
          maxLength={200}
          required
          autoFocus
        />
        <FormEnd act={act} verb="Create project" onClose={onClose} />
      </form>
    </Dialog>
  );
}
