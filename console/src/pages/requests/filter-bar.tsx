/** The filters above the list. What is chosen applies at once, what is typed by Enter or the button. */

import { type FormEvent, useCallback, useEffect, useState } from "react";
import { type Api, content } from "../../api/client";
import { Failure } from "../../api/failure";
import { walkList } from "../../api/walking";
import { type Option, SelectField, TextField } from "../../ui/fields";
import { useLoad } from "../../ui/loading";
import { useNames } from "../../ui/names";
import { useSession } from "../../ui/session";
import type { Want, Wanted } from "./filters";

interface FilterBarProperties {
  readonly wanted: Wanted;
  readonly want: Want;
  /** Error codes to suggest. */
  readonly codes: readonly string[];
}

const TYPED = ["model", "code", "from", "to"] as const;

export function FilterBar({ wanted, want, codes }: FilterBarProperties) {
  const { model, code, from, to } = wanted;
  const [typed, setTyped] = useState({ model, code, from, to });
  useEffect(() => setTyped({ model, code, from, to }), [model, code, from, to]);
  const projects = useOptions(projectsOf, wanted.project, "Every project");
  const keys = chosenOf(useNames().keysOf(wanted.project), wanted.key, "Every key");
  const models = useOptions(modelsOf, "", "");
  const policies = useOptions(policiesOf, wanted.policy, "Any");
  const apply = (event: FormEvent) => {
    event.preventDefault();
    for (const name of TYPED) want(name, typed[name].trim());
  };
  const type = (name: (typeof TYPED)[number]) => (value: string) =>
    setTyped((before) => ({ ...before, [name]: value }));
  return (
    <form className="bar filters" aria-label="Filters" onSubmit={apply}>
      <SelectField
        label="Project"
        value={wanted.project}
        options={projects}
        onValue={(value) => {
          want("project", value);
          want("key", "");
        }}
      />
      <SelectField
        label="Key"
        value={wanted.key}
        options={keys}
        onValue={(value) => want("key", value)}
      />
      <SelectField
        label="Matched by policy"
        value={wanted.policy}
        options={policies}
        onValue={(value) => want("policy", value)}
      />
      <TextField
        label="Model"
        value={typed.model}
        onValue={type("model")}
        spellCheck={false}
        suggestions={models.map(({ value }) => value).filter((value) => value !== "")}
      />
      <TextField
        label="Error code"
        value={typed.code}
        onValue={type("code")}
        spellCheck={false}
        suggestions={codes}
      />
      {wanted.range === "custom" && (
        <>
          <TextField
            label="From (UTC)"
            type="datetime-local"
            value={typed.from}
            onValue={type("from")}
          />
          <TextField
            label="To (UTC)"
            type="datetime-local"
            min={typed.from}
            value={typed.to}
            onValue={type("to")}
          />
        </>
      )}
      <button type="submit" className="button">
        Filter
      </button>
    </form>
  );
}

type ReadOptions = (admin: Api) => Promise<ReadonlyArray<Option<string>>>;

/** What can be chosen. A choice of the address stays, even if its name cannot be read. */
function useOptions(read: ReadOptions, chosen: string, all: string): ReadonlyArray<Option<string>> {
  const { admin } = useSession();
  const load = useCallback(() => readable(read, admin), [read, admin]);
  return chosenOf(useLoad(load).value ?? [], chosen, all);
}

function chosenOf(
  options: ReadonlyArray<Option<string>>,
  chosen: string,
  all: string,
): ReadonlyArray<Option<string>> {
  const isKnown = chosen === "" || options.some(({ value }) => value === chosen);
  return [
    { value: "", title: all },
    ...options,
    ...(isKnown ? [] : [{ value: chosen, title: chosen }]),
  ];
}

async function readable(read: ReadOptions, admin: Api): Promise<ReadonlyArray<Option<string>>> {
  try {
    return await read(admin);
  } catch (thrown) {
    if (thrown instanceof Failure) return [];
    throw thrown;
  }
}

async function projectsOf(admin: Api) {
  const { items } = await walkList((query) =>
    content(admin.GET("/manage/v1/organization/projects", { params: { query } })),
  );
  return items.map(asOption);
}

async function modelsOf(admin: Api) {
  const { data } = await content(admin.GET("/manage/v1/organization/models"));
  return data.map(({ id, display_name }) => ({ value: id, title: display_name }));
}

async function policiesOf(admin: Api) {
  const { items } = await walkList((query) =>
    content(admin.GET("/manage/v1/organization/policies", { params: { query } })),
  );
  return items.map(asOption);
}

function asOption({ id, name }: { id: string; name: string }): Option<string> {
  return { value: id, title: name };
}
