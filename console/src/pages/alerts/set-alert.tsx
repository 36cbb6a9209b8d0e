/** A subscription: where alerts go and about what, and its secret, which is shown once. */

import { type FormEvent, useState } from "react";
import { content, idempotencyKey } from "../../api/client";
import type { AlertSubscription } from "../../api/types";
import { CopyLine } from "../../ui/copying";
import { Dialog } from "../../ui/dialog";
import { Choices, TextField } from "../../ui/fields";
import { FormEnd } from "../../ui/form-end";
import { useAct } from "../../ui/loading";
import { SecretDialog } from "../../ui/secret-dialog";
import { useSession } from "../../ui/session";
import { isWrong, NOTHING_TYPED, thresholdsOf, typedOf } from "./thresholds";

const PATH = "/manage/v1/organization/alert_subscriptions";
const DESTINATIONS = [
  { value: "url", title: "Webhook" },
  { value: "emails", title: "E-mail" },
] as const;

const FIELDS = [
  {
    name: "caps",
    label: "Cap used (%)",
    hint: "When this share of any cap is used, such as 50, 80, 95.",
  },
  {
    name: "credits",
    label: "Credit used (%)",
    hint: "When this share of all credit so far is used.",
  },
  { name: "below", label: "Credit left (USD)", hint: "When this much or less is left." },
  {
    name: "matches",
    label: "Policy matches in an hour",
    hint: "When one policy matches so often.",
  },
  {
    name: "unsettled",
    label: "Unsettled requests",
    hint: "When so many requests have no final cost.",
  },
] as const;

interface SetAlertProperties {
  /** The subscription to change, or none for a new one. */
  readonly known?: AlertSubscription;
  readonly onSaved: () => void;
  readonly onClose: () => void;
}

export function SetAlert({ known, onSaved, onClose }: SetAlertProperties) {
  const { admin } = useSession();
  const [name, setName] = useState(known?.name ?? "");
  const [kind, setKind] = useState<"url" | "emails">(known?.emails.length ? "emails" : "url");
  const [destination, setDestination] = useState(known?.url ?? known?.emails.join(", ") ?? "");
  const [form, setForm] = useState(known === undefined ? NOTHING_TYPED : typedOf(known));
  const [secret, setSecret] = useState<string | null>(null);
  const [key] = useState(idempotencyKey);
  const act = useAct();
  const thresholds = thresholdsOf(form);
  const save = (event: FormEvent) => {
    event.preventDefault();
    if (thresholds === null) return;
    act.run(async () => {
      const emails = destination.split(",").map((email) => email.trim());
      const to = kind === "url" ? { url: destination } : { emails };
      const body = { name, ...thresholds, ...to };
      const saved = await content(
        known === undefined
          ? admin.POST(PATH, { params: { header: { "Idempotency-Key": key } }, body })
          : admin.PUT(`${PATH}/{alert_subscription_id}`, {
              params: { path: { alert_subscription_id: known.id } },
              body,
            }),
      );
      onSaved();
      if (saved.secret) setSecret(saved.secret);
      else onClose();
    });
  };
  if (secret !== null) return <NewSecret secret={secret} onClose={onClose} />;
  return (
    <Dialog title={known?.name ?? "New alert"} isWide onClose={onClose}>
      <form className="form" onSubmit={save}>
        <TextField label="Name" value={name} onValue={setName} required />
        <Choices label="Send by" value={kind} options={DESTINATIONS} onValue={setKind} />
        <TextField
          label={kind === "url" ? "URL" : "Addresses"}
          hint={kind === "url" ? "A public https address." : "Separated by commas."}
          value={destination}
          onValue={setDestination}
          required
        />
        <p className="quiet">Fill in at least one threshold. An empty field sends no alert.</p>
        {FIELDS.map((field) => (
          <TextField
            key={field.name}
            label={field.label}
            hint={field.hint}
            {...(isWrong(field.name, form[field.name])
              ? { fault: `Not understood. ${field.hint}` }
              : {})}
            inputMode="decimal"
            value={form[field.name]}
            onValue={(value) => setForm({ ...form, [field.name]: value })}
          />
        ))}
        <FormEnd
          act={act}
          verb={known === undefined ? "Create alert" : "Save"}
          isDisabled={thresholds === null}
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}

export function NewSecret({ secret, onClose }: { secret: string; onClose: () => void }) {
  return (
    <SecretDialog
      title="The signing secret"
      notice="Copy the secret now. It is shown only once; your receiver verifies alerts with it."
      onClose={onClose}
    >
      <CopyLine text={secret} label="Signing secret" />
    </SecretDialog>
  );
}
