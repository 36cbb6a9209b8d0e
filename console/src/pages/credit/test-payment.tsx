/** Credit without paying, which only a sandbox gives. */

import { type FormEvent, useState } from "react";
import { content, idempotencyKey } from "../../api/client";
import { typed } from "../../base/money";
import { Dialog } from "../../ui/dialog";
import { TextField } from "../../ui/fields";
import { FormEnd } from "../../ui/form-end";
import { useAct } from "../../ui/loading";
import { useSession } from "../../ui/session";

interface TestPaymentProperties {
  readonly onPaid: () => void;
  readonly onClose: () => void;
}

export function TestPayment({ onPaid, onClose }: TestPaymentProperties) {
  const { admin } = useSession();
  const [amount, setAmount] = useState("10");
  const [key] = useState(idempotencyKey);
  const act = useAct();
  const value = typed(amount);
  const pay = (event: FormEvent) => {
    event.preventDefault();
    if (value === null) return;
    act.run(async () => {
      await content(
        admin.POST("/manage/v1/organization/credits/test_payments", {
          params: { header: { "Idempotency-Key": key } },
          body: { amount: { value, currency: "usd" } },
        }),
      );
      onPaid();
      onClose();
    });
  };
  return (
    <Dialog title="Test payment" onClose={onClose}>
      <form className="form" onSubmit={pay}>
        <p>This gateway is a sandbox: a test payment adds credit, and no money moves.</p>
        <TextField
          label="Amount (USD)"
          {...(amount === "" || value !== null ? {} : { fault: "An amount such as 250 or 12.50." })}
          inputMode="decimal"
          value={amount}
          onValue={setAmount}
          required
          autoFocus
        />
        <FormEnd act={act} verb="Add credit" isDisabled={value === null} onClose={onClose} />
      </form>
    </Dialog>
  );
}
