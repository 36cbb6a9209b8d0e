/** The fields of a draft. */

import { useCallback } from "react";
import { content } from "../../api/client";
import { walkList } from "../../api/walking";
import { CheckField, SelectField, TextArea, TextField } from "../../ui/fields";
import { Loaded, useLoad } from "../../ui/loading";
import { useSession } from "../../ui/session";
import { Advice, useAdvice } from "./advice";
import { type Draft, faultsOf, judging } from "./drafting";
import { EarlyEnd } from "./early-end";
import { DIRECTIONS, MODES, SCOPES } from "./words";

const DIRECTION_OPTIONS = options(DIRECTIONS);
const MODE_OPTIONS = options(MODES);
const SCOPE_OPTIONS = options(SCOPES);

function options<T extends string>(titles: Readonly<Record<T, string>>) {
  return (Object.keys(titles) as T[]).map((value) => ({ value, title: titles[value] }));
}

interface DraftFieldsProperties {
  /** Whether the policy exists: a creation cannot say that answers end early. */
  readonly isSaved: boolean;
  readonly draft: Draft;
  readonly onDraft: (draft: Draft) => void;
}

export function DraftFields({ isSaved, draft, onDraft }: DraftFieldsProperties) {
  const set = <K extends keyof Draft>(field: K) => {
    return (value: Draft[K]) => onDraft({ ...draft, [field]: value });
  };
  const faults = faultsOf(draft);
  const advice = useAdvice(draft.rule);
  return (
    <>
      <TextField label="Name" value={draft.name} onValue={set("name")} maxLength={80} required />
      <div className="advised">
        <TextArea
          label="Rule"
          hint="A yes-or-no question about the text. The answer yes is a match."
          {...(draft.rule === "" || faults.rule === undefined ? {} : { fault: faults.rule })}
          value={draft.rule}
          onValue={set("rule")}
          rows={4}
          maxLength={20_000}
          required
        />
        <Advice of={advice} />
      </div>
      <TextField
        label="Description (optional)"
        value={draft.description}
        onValue={set("description")}
        maxLength={240}
      />
      <SelectField label="Mode" value={draft.mode} options={MODE_OPTIONS} onValue={set("mode")} />
      <SelectField
        label="Judges"
        value={draft.direction}
        options={DIRECTION_OPTIONS}
        onValue={(direction) => onDraft(judging(draft, direction))}
      />
      {isSaved && (
        <EarlyEnd draft={draft} onValue={set("endsEarly")} remarks={advice.value ?? []} />
      )}
      <SelectField
        label="Scope"
        value={draft.scope}
        options={SCOPE_OPTIONS}
        onValue={set("scope")}
      />
      {draft.scope === "projects" && (
        <ProjectChoice chosen={draft.projectIds} onChosen={set("projectIds")} />
      )}
      <TextField
        label="Match from (%)"
        hint="The lowest score that is a match. Leave it empty for the gateway's default."
        {...(faults.threshold === undefined ? {} : { fault: faults.threshold })}
        inputMode="decimal"
        value={draft.threshold}
        onValue={set("threshold")}
      />
    </>
  );
}

interface ProjectChoiceProperties {
  readonly chosen: readonly string[];
  readonly onChosen: (ids: readonly string[]) => void;
}

function ProjectChoice({ chosen, onChosen }: ProjectChoiceProperties) {
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
    <fieldset className="field">
      <legend>Projects</legend>
      <Loaded of={projects}>
        {({ items }) => (
          <div className="choosing">
            {items
              .filter(({ id, status }) => status === "active" || chosen.includes(id))
              .map(({ id, name }) => (
                <CheckField
                  key={id}
                  label={name}
                  isChecked={chosen.includes(id)}
                  onValue={(isChosen) =>
                    onChosen(isChosen ? [...chosen, id] : chosen.filter((other) => other !== id))
                  }
                />
              ))}
          </div>
        )}
      </Loaded>
    </fieldset>
  );
}
