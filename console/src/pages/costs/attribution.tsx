/** Costs by what callers say a request is for, if the organization stores it. */

import { type FormEvent, useCallback, useState } from "react";
import { type Api, content } from "../../api/client";
import type { AttributionSettings } from "../../api/types";
import type { Span } from "../../base/days";
import { namesIn } from "../../base/lists";
import { Confirmation } from "../../ui/confirmation";
import { Count, Empty, Money, Panel } from "../../ui/data";
import { Dialog } from "../../ui/dialog";
import { Choices, TextField } from "../../ui/fields";
import { FormEnd } from "../../ui/form-end";
import { Loaded, useAct, useLoad } from "../../ui/loading";
import { useSession } from "../../ui/session";
import { type Column, Table } from "../../ui/table";
import { compare } from "./breakdown";
import { type GroupUsage, readUsage } from "./usage";

const PATH = "/manage/v1/organization/attribution";

export function Attribution({ span }: { span: Span }) {
  const { admin } = useSession();
  const [isChanging, setChanging] = useState(false);
  const load = useCallback((signal: AbortSignal) => content(admin.GET(PATH, { signal })), [admin]);
  const setting = useLoad(load);
  return (
    <Panel
      title="Costs by user or metadata"
      actions={
        <button
          type="button"
          className="button button-small"
          disabled={setting.value === null}
          onClick={() => setChanging(true)}
        >
          Change stored values
        </button>
      }
    >
      <Loaded of={setting}>
        {(value) =>
          value.dimensions.length === 0 ? (
            <Empty>
              The organization stores no values of requests. For a budget per person, create a key
              for each person.
            </Empty>
          ) : (
            <Values key={value.dimensions.join()} span={span} dimensions={value.dimensions} />
          )
        }
      </Loaded>
      {isChanging && setting.value !== null && (
        <Change
          admin={admin}
          known={setting.value}
          onChanged={setting.reload}
          onClose={() => setChanging(false)}
        />
      )}
    </Panel>
  );
}

function Values({ span, dimensions }: { span: Span; dimensions: readonly string[] }) {
  const { admin } = useSession();
  const [dimension, setDimension] = useState(dimensions[0] ?? "");
  const [leaving, setLeaving] = useState<string | null>(null);
  const load = useCallback(
    (signal: AbortSignal) => readUsage(admin, span, dimension, signal),
    [admin, dimension, span],
  );
  const costs = useLoad(load);
  const erase = async () => {
    const body = { dimension, value: leaving ?? "" };
    await content(admin.POST(`${PATH}/deletions`, { body }));
    costs.reload();
  };
  return (
    <>
      <Choices
        label="Named by"
        value={dimension}
        options={dimensions.map((name) => ({ value: name, title: name }))}
        onValue={setDimension}
      />
      <Loaded of={costs}>
        {(value) => (
          <Table
            caption={`Costs by ${dimension}`}
            columns={columns(setLeaving)}
            rows={[...value].sort(([, one], [, other]) => compare(other.amount, one.amount))}
            keyOf={([name]) => name}
          />
        )}
      </Loaded>
      {leaving !== null && (
        <Confirmation
          title={`Delete ${leaving}?`}
          verb="Delete"
          isGrave
          onConfirm={erase}
          onClose={() => setLeaving(null)}
        >
          The value is removed from all days. Its costs stay, as (deleted).
        </Confirmation>
      )}
    </>
  );
}

function columns(erase: (value: string) => void): ReadonlyArray<Column<[string, GroupUsage]>> {
  return [
    { title: "Value", cell: ([value]) => <span className="anywhere">{value}</span> },
    { title: "Requests", cell: ([, { requests }]) => <Count of={requests} />, isNumeric: true },
    { title: "Amount", cell: ([, { amount }]) => <Money of={amount} />, isNumeric: true },
    {
      title: "",
      cell: ([value]) =>
        !value.startsWith("(") && (
          <button type="button" className="button button-small" onClick={() => erase(value)}>
            Delete
          </button>
        ),
    },
  ];
}

interface ChangeProperties {
  readonly admin: Api;
  readonly known: AttributionSettings;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

function Change({ admin, known, onChanged, onClose }: ChangeProperties) {
  const [names, setNames] = useState(known.dimensions.join(", "));
  const [days, setDays] = useState(String(known.retention_days));
  const act = useAct();
  const save = (event: FormEvent) => {
    event.preventDefault();
    act.run(async () => {
      const body = { dimensions: namesIn(names), retention_days: Number(days) };
      await content(admin.PUT(PATH, { body }));
      onChanged();
      onClose();
    });
  };
  return (
    <Dialog title="Values that are stored" onClose={onClose}>
      <form className="form" onSubmit={save}>
        <p>
          Values may be personal data. They are stored with the request and deleted after the days
          below.
        </p>
        <TextField
          label="Stored values"
          hint="user, safety_identifier or metadata.KEY, separated by commas. Leave it empty to store none."
          value={names}
          onValue={setNames}
        />
        <TextField
          label="Days until they are deleted"
          type="number"
          min={1}
          max={400}
          value={days}
          onValue={setDays}
          required
        />
        <FormEnd act={act} verb="Save" onClose={onClose} />
      </form>
    </Dialog>
  );
}
