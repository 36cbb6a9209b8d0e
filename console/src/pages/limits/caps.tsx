/** Spending caps: how full they are, set and removed. */

import { type FormEvent, useCallback, useState } from "react";
import { content } from "../../api/client";
import type { Names } from "../../api/names";
import type { SpendingLimit } from "../../api/types";
import { walkList } from "../../api/walking";
import { typed } from "../../base/money";
import { Confirmation } from "../../ui/confirmation";
import { Empty, Panel } from "../../ui/data";
import { Dialog } from "../../ui/dialog";
import { SelectField, TextField } from "../../ui/fields";
import { FormEnd } from "../../ui/form-end";
import { Loaded, useAct, useLoad } from "../../ui/loading";
import { useNames } from "../../ui/names";
import { useSession } from "../../ui/session";
import { CapMeter, PERIODS } from "./cap-meter";
import { idsOf, type Scoped, ScopeFields, scopedBy, scopeName } from "./scope";

type Asked =
  | { readonly verb: "set" }
  | { readonly verb: "change" | "remove"; readonly cap: SpendingLimit };

export function Caps() {
  const { admin } = useSession();
  const names = useNames();
  const [asked, ask] = useState<Asked | null>(null);
  const load = useCallback(
    (signal: AbortSignal) =>
      walkList((query) =>
        content(
          admin.GET("/manage/v1/organization/spending_limits", { params: { query }, signal }),
        ),
      ),
    [admin],
  );
  const caps = useLoad(load);
  const close = () => ask(null);
  return (
    <Panel
      title="Spending caps"
      actions={
        <button type="button" className="button button-main" onClick={() => ask({ verb: "set" })}>
          Set a cap
        </button>
      }
    >
      <Loaded of={caps}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty>No spending cap is set: all of the credit can be spent.</Empty>
          ) : (
            <ul className="caps">
              {items.map((cap) => (
                <CapMeter
                  key={cap.id}
                  cap={cap}
                  names={names}
                  actions={<CapActions cap={cap} names={names} onAsk={ask} />}
                />
              ))}
            </ul>
          )
        }
      </Loaded>
      {asked?.verb === "set" && <SetCap cap={null} onSet={caps.reload} onClose={close} />}
      {asked?.verb === "change" && <SetCap cap={asked.cap} onSet={caps.reload} onClose={close} />}
      {asked?.verb === "remove" && (
        <RemoveCap cap={asked.cap} names={names} onRemoved={caps.reload} onClose={close} />
      )}
    </Panel>
  );
}

interface CapActionsProperties {
  readonly cap: SpendingLimit;
  readonly names: Names;
  readonly onAsk: (asked: Asked) => void;
}

function CapActions({ cap, names, onAsk }: CapActionsProperties) {
  const of = `the cap of ${scopeName(cap, names)}, ${PERIODS[cap.period]}`;
  return (
    <span className="row">
      {(["change", "remove"] as const).map((verb) => (
        <button
          key={verb}
          type="button"
          className="button button-plain"
          aria-label={`${verb === "change" ? "Change" : "Remove"} ${of}`}
          onClick={() => onAsk({ verb, cap })}
        >
          {verb === "change" ? "Change" : "Remove"}
        </button>
      ))}
    </span>
  );
}

const PERIOD_OPTIONS = [
  { value: "day", title: "Each UTC day" },
  { value: "week", title: "Each week from Monday (UTC)" },
  { value: "month", title: "Each UTC month" },
  { value: "lifetime", title: "All time" },
] as const;

interface SetCapProperties {
  /** The one to change; a new one where there is none. */
  readonly cap: SpendingLimit | null;
  readonly onSet: () => void;
  readonly onClose: () => void;
}

function SetCap({ cap, onSet, onClose }: SetCapProperties) {
  const { admin } = useSession();
  const [choice, setChoice] = useState({ projectId: "", keyId: "" });
  const [period, setPeriod] = useState<SpendingLimit["period"]>(cap?.period ?? "month");
  const [amount, setAmount] = useState(cap?.limit.value ?? "");
  const [alert, setAlert] = useState(String(cap?.alert_percent ?? 80));
  const act = useAct();
  const value = typed(amount);
  const scoped: Scoped = cap ?? scopedBy(choice);
  const isSound = value !== null && /^([1-9]\d?|100)$/.test(alert);
  const set = (event: FormEvent) => {
    event.preventDefault();
    if (value === null) return;
    act.run(async () => {
      await content(
        admin.PUT("/manage/v1/organization/spending_limits", {
          body: {
            ...idsOf(scoped),
            period,
            limit: { value, currency: "usd" },
            alert_percent: Number(alert),
          },
        }),
      );
      onSet();
      onClose();
    });
  };
  return (
    <Dialog title={cap === null ? "Set a cap" : "Change the cap"} onClose={onClose}>
      <form className="form" onSubmit={set}>
        {cap === null && (
          <>
            <ScopeFields {...choice} onChoice={setChoice} />
            <SelectField label="For" value={period} options={PERIOD_OPTIONS} onValue={setPeriod} />
          </>
        )}
        <TextField
          label="Amount (USD)"
          hint="A request that could exceed the cap is refused before it reaches a model."
          {...(amount === "" || value !== null ? {} : { fault: "An amount such as 250 or 12.50." })}
          inputMode="decimal"
          value={amount}
          onValue={setAmount}
          required
        />
        <TextField
          label="Alert at (%)"
          inputMode="numeric"
          value={alert}
          onValue={setAlert}
          required
        />
        <FormEnd act={act} verb="Set cap" isDisabled={!isSound} onClose={onClose} />
      </form>
    </Dialog>
  );
}

interface RemoveCapProperties {
  readonly cap: SpendingLimit;
  readonly names: Names;
  readonly onRemoved: () => void;
  readonly onClose: () => void;
}

function RemoveCap({ cap, names, onRemoved, onClose }: RemoveCapProperties) {
  const { admin } = useSession();
  const remove = async () => {
    const query = { ...idsOf(cap), period: cap.period };
    await content(admin.DELETE("/manage/v1/organization/spending_limits", { params: { query } }));
    onRemoved();
  };
  return (
    <Confirmation
      title={`Remove the cap of ${scopeName(cap, names)}?`}
      verb="Remove cap"
      isGrave
      onConfirm={remove}
      onClose={onClose}
    >
      Other caps and the credit still apply. Spending is still counted, also for a cap that you set
      later.
    </Confirmation>
  );
}
