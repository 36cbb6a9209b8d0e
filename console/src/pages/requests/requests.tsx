/** The latest requests, by range and filter or live, and one by its ID. */

import { type FormEvent, useState } from "react";
import { Panel } from "../../ui/data";
import { CheckField, Choices, TextField } from "../../ui/fields";
import { go, useChoice, useText } from "../../ui/navigation";
import { useNow } from "../../ui/now";
import { Page } from "../../ui/page";
import { FilterBar } from "./filter-bar";
import { FILTERS, OUTCOMES, RANGES, type Range, startOf, type Want, type Wanted } from "./filters";
import { Listed } from "./listed";
import { OutcomeChoices } from "./outcomes";
import { codesIn, useTraffic } from "./traffic";

export function Requests() {
  const [wanted, want] = useWanted();
  const [isLive, setLive] = useState(false);
  const isRange = wanted.range === "custom";
  const hasEnd = isRange && wanted.to !== "";
  return (
    <Page
      title="Requests"
      about="The outcome of each request. Prompts and answers are not stored. Times are in UTC."
    >
      <div className="bar bar-apart">
        <Finder />
        <Choices
          label="Range"
          value={wanted.range}
          options={RANGES}
          onValue={(value) => want("range", value)}
        />
      </div>
      <Panel
        title="Latest requests"
        actions={
          <CheckField
            label="Live"
            isChecked={isLive && !hasEnd}
            onValue={setLive}
            disabled={hasEnd}
          />
        }
      >
        <div className="stack">
          {isRange ? (
            <Filtered wanted={wanted} want={want} />
          ) : (
            <Counted range={wanted.range} wanted={wanted} want={want} />
          )}
          <Listed wanted={wanted} want={want} isLive={isLive && !hasEnd} />
        </div>
      </Panel>
    </Page>
  );
}

interface FilteredProperties {
  readonly wanted: Wanted;
  readonly want: Want;
}

function Filtered({ wanted, want }: FilteredProperties) {
  return (
    <>
      <OutcomeChoices wanted={wanted} want={want} counted={null} />
      <FilterBar wanted={wanted} want={want} codes={[]} />
    </>
  );
}

interface CountedProperties extends FilteredProperties {
  readonly range: Exclude<Range, "custom">;
}

/** The counts of a range are those of all requests, so they stand there while no filter is set. */
function Counted({ range, wanted, want }: CountedProperties) {
  const now = useNow();
  const buckets = useTraffic(startOf(range, now)).value;
  const isWhole = FILTERS.every((name) => wanted[name] === "");
  return (
    <>
      <OutcomeChoices wanted={wanted} want={want} counted={isWhole ? buckets : null} />
      <FilterBar wanted={wanted} want={want} codes={codesIn(buckets ?? [])} />
    </>
  );
}

/** The filters, which are part of the address. */
function useWanted(): [Wanted, Want] {
  const [outcome, setOutcome] = useChoice("outcome", OUTCOMES, "all");
  const [range, setRange] = useChoice(
    "range",
    RANGES.map(({ value }) => value),
    "24h",
  );
  const [project, setProject] = useText("project");
  const [key, setKey] = useText("key");
  const [model, setModel] = useText("model");
  const [code, setCode] = useText("code");
  const [policy, setPolicy] = useText("policy");
  const [from, setFrom] = useText("from");
  const [to, setTo] = useText("to");
  const setters: Readonly<Record<keyof Wanted, (value: string) => void>> = {
    outcome: (value) => setOutcome(OUTCOMES.find((known) => known === value) ?? "all"),
    range: (value) => setRange(RANGES.find((known) => known.value === value)?.value ?? "24h"),
    project: setProject,
    key: setKey,
    model: setModel,
    code: setCode,
    policy: setPolicy,
    from: setFrom,
    to: setTo,
  };
  const wanted = { outcome, range, project, key, model, code, policy, from, to };
  return [wanted, (name, value) => setters[name](value)];
}

function Finder() {
  const [id, setId] = useState("");
  const find = (event: FormEvent) => {
    event.preventDefault();
    if (id.trim() !== "") go({ page: "request", id: id.trim() });
  };
  return (
    <form className="bar finder" onSubmit={find}>
      <TextField
        label="Request ID"
        data-finder=""
        placeholder="The X-Request-ID of the response"
        value={id}
        onValue={setId}
        spellCheck={false}
        autoComplete="off"
      />
      <button type="submit" className="button">
        Look it up
      </button>
    </form>
  );
}
