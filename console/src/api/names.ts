/** What projects and keys are called, since reports know only their IDs. */

import { type Api, content } from "./client";
import { Failure } from "./failure";
import { walkList } from "./walking";

const PROJECTS_ASKED_MAX = 50;
const SHOWN_OF_ID = 8;

export interface Names {
  project(id: string): string;
  key(id: string): string;
  /** The known keys of a project, or of all of them where it is empty, to choose from. */
  keysOf(projectId: string): ReadonlyArray<{ readonly value: string; readonly title: string }>;
}

export interface NamedKey {
  readonly name: string;
  readonly projectId: string;
}

/** Names by ID; an ID that has none here is shown by its end, which differs most. */
export function namesFrom(
  projects: ReadonlyMap<string, string>,
  keys: ReadonlyMap<string, NamedKey>,
): Names {
  const ending = (id: string) => `…${id.slice(-SHOWN_OF_ID)}`;
  return {
    project: (id) => projects.get(id) ?? `project ${ending(id)}`,
    key: (id) => keys.get(id)?.name ?? `key ${ending(id)}`,
    keysOf: (projectId) =>
      [...keys]
        .filter(([, key]) => projectId === "" || key.projectId === projectId)
        .map(([value, { name, projectId: owner }]) => ({
          value,
          title: projectId === "" ? `${name} (${projects.get(owner) ?? "…"})` : name,
        })),
  };
}

export const NO_NAMES = namesFrom(new Map(), new Map());

const remembered = new WeakMap<Api, Promise<Names>>();

/** The names as they were last read; whoever gives a name forgets them. */
export function namesFor(admin: Api): Promise<Names> {
  const known = remembered.get(admin) ?? readNames(admin);
  remembered.set(admin, known);
  return known;
}

export function forgetNames(admin: Api): void {
  remembered.delete(admin);
}

/** Names are a comfort: whoever may not read them, or cannot now, sees IDs. */
async function readNames(admin: Api): Promise<Names> {
  const projects = await readable(() =>
    walkList((query) =>
      content(admin.GET("/manage/v1/organization/projects", { params: { query } })),
    ),
  );
  const asked = projects.slice(0, PROJECTS_ASKED_MAX);
  const keys = await Promise.all(asked.map(({ id }) => readable(() => keysOf(admin, id))));
  return namesFrom(
    new Map(projects.map(({ id, name }) => [id, name])),
    new Map(keys.flat().map(({ id, name, owner }) => [id, { name, projectId: owner.id }])),
  );
}

function keysOf(admin: Api, project_id: string) {
  return walkList((query) =>
    content(
      admin.GET("/manage/v1/organization/projects/{project_id}/api_keys", {
        params: { path: { project_id }, query },
      }),
    ),
  );
}

async function readable<T>(read: () => Promise<{ items: readonly T[] }>): Promise<readonly T[]> {
  try {
    return (await read()).items;
  } catch (thrown) {
    if (thrown instanceof Failure) return [];
    throw thrown;
  }
}
