/** Set a spending cap, or change one. */

import { type FormEvent, useState } from "react";
import { content } from "../../api/client";
import type { SpendingLimit } from "../../api/types";
import { typed } from "../../base/money";
import { Dialog } from "../../ui/dialog";
import { SelectField, TextField } from "../../ui/fields";
import { FormEnd } from "../../ui/form-end";
import { useAct } from "../../ui/loading";
import { useSession } from "../../ui/session";
import { idsOf, type Scoped, ScopeFields, scopedBy } from "./scope";

export type Period = SpendingLimit["period"];

export const PERIOD_OPTIONS = [
  { value: "day", title: "Each UTC day" },
  { value: "week", title: "Each week from Monday (UTC)" },
  { value: "month", title: "Each UTC month" },
  { value: "lifetime", title: "All time" },
] as const;

interface SetCapProperties {
  /** The one to change; a new one where there is none. */
  readonly cap: SpendingLimit | null;
  /** What a new one is set on; asked for where it is not given. */
  readonly scope?: Scoped;
  readonly onSet: () => void;
  readonly onClose: () => void;
}

export function SetCap({ cap, scope, onSet, onClose }: SetCapProperties) {
  const { admin } = useSession();
  const [choice, setChoice] = useState({ projectId: "", keyId: "" });
  const [period, setPeriod] = useState<Period>(cap?.period ?? "month");
  const [amount, setAmount] = useState(cap?.limit.value ?? "");
  const [alert, setAlert] = useState(String(cap?.alert_percent ?? 80));
  const act = useAct();
  const value = typed(amount);
  const isPercent = /^([1-9]\d?|100)$/.test(alert);
  const set = (event: FormEvent) => {
    event.preventDefault();
    if (value === null) return;
    act.run(async () => {
      await content(
        admin.PUT("/manage/v1/organization/spending_limits", {
          body: {
            ...idsOf(cap ?? scope ?? scopedBy(choice)),
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
        {cap === null && scope === undefined && <ScopeFields {...choice} onChoice={setChoice} />}
        {cap === null && (
          <SelectField label="For" value={period} options={PERIOD_OPTIONS} onValue={setPeriod} />
        )}
        <AmountField amount={amount} onAmount={setAmount} required autoFocus={cap !== null} />
        <TextField
          label="Alert at (%)"
          {...(isPercent ? {} : { fault: "Enter a whole number from 1 to 100." })}
          inputMode="numeric"
          value={alert}
          onValue={setAlert}
          required
        />
        <FormEnd
          act={act}
          verb="Set cap"
          isDisabled={(amount !== "" && value === null) || !isPercent}
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}

interface AmountFieldProperties {
  readonly label?: string;
  readonly amount: string;
  readonly onAmount: (amount: string) => void;
  readonly required?: boolean;
  readonly autoFocus?: boolean;
}

/** An amount in US dollars, with a word about one that cannot be read. */
export function AmountField(properties: AmountFieldProperties) {
  const { label = "Amount (USD)", amount, onAmount, ...rest } = properties;
  const isSound = amount === "" || typed(amount) !== null;
  return (
    <TextField
      label={label}
      hint="A request that could exceed the cap is refused before it reaches a model."
      {...(isSound ? {} : { fault: "Enter an amount in US dollars, such as 250 or 12.50." })}
      inputMode="decimal"
      value={amount}
      onValue={onAmount}
      {...rest}
    />
  );
}
