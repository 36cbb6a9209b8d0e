/** Models answer project keys alone, so the playground asks for one, which the page keeps in its memory. */

import { type FormEvent, type ReactNode, useMemo, useState } from "react";
import { type Api, apiWith } from "../api/client";
import { Panel } from "./data";
import { TextField } from "./fields";
import { Link } from "./navigation";
import { useSession } from "./session";

interface WithProjectKeyProperties {
  readonly children: (customer: Api, key: string) => ReactNode;
}

export function WithProjectKey({ children }: WithProjectKeyProperties) {
  const { projectKey, holdProjectKey } = useSession();
  const customer = useMemo(() => apiWith(projectKey), [projectKey]);
  if (projectKey === "") return <Ask onKey={holdProjectKey} />;
  return (
    <>
      {children(customer, projectKey)}
      <p className="quiet">
        With the project key <code>{projectKey.slice(0, 10)}…</code>{" "}
        <button type="button" className="button button-plain" onClick={() => holdProjectKey("")}>
          Use another
        </button>
      </p>
    </>
  );
}

function Ask({ onKey }: { onKey: (key: string) => void }) {
  const [key, setKey] = useState("");
  const isKey = /^thp_(?:[a-z][a-z0-9]{0,15}_)?[0-9A-Za-z]+$/.test(key.trim());
  const enter = (event: FormEvent) => {
    event.preventDefault();
    if (isKey) onKey(key.trim());
  };
  return (
    <Panel title="A project key is needed">
      <form className="form narrow" onSubmit={enter}>
        <p>
          Models answer the keys of projects, not Admin keys. The key stays in the memory of this
          page until you reload it. Create one under{" "}
          <Link to={{ page: "projects" }}>Projects and keys</Link>.
        </p>
        <TextField
          label="Project key"
          type="password"
          autoComplete="off"
          spellCheck={false}
          placeholder="thp_…"
          {...(key === "" || isKey ? {} : { fault: "A project key begins with thp_." })}
          value={key}
          onValue={setKey}
        />
        <div className="row">
          <button type="submit" className="button button-main" disabled={!isKey}>
            Use this key
          </button>
        </div>
      </form>
    </Panel>
  );
}
