/** Who receives which alerts, and what became of each. */

import { useCallback, useRef, useState } from "react";
import { content, idempotencyKey } from "../../api/client";
import type { AlertDelivery, AlertSubscription } from "../../api/types";
import { walkList } from "../../api/walking";
import { Confirmation } from "../../ui/confirmation";
import { Badge, Empty, Panel, When } from "../../ui/data";
import { Loaded, useAct, useLoad } from "../../ui/loading";
import { Page } from "../../ui/page";
import { Paged } from "../../ui/paged";
import { Refusal } from "../../ui/refusal";
import { useSession } from "../../ui/session";
import { type Column, Table } from "../../ui/table";
import { NewSecret, SetAlert } from "./set-alert";
import { phrasesOf } from "./thresholds";

const SUBSCRIPTION = "/manage/v1/organization/alert_subscriptions/{alert_subscription_id}";

const TITLES = { edit: "Edit", rotate: "New secret for", delete: "Delete" } as const;

type Asked =
  | { readonly verb: "create" }
  | { readonly verb: "edit" | "delete" | "rotate"; readonly subscription: AlertSubscription }
  | { readonly verb: "show"; readonly secret: string };

export function Alerts() {
  const { admin } = useSession();
  const [asked, ask] = useState<Asked | null>(null);
  const [tests, setTests] = useState(0);
  const act = useAct();
  const load = useCallback(
    (signal: AbortSignal) =>
      walkList((query) =>
        content(
          admin.GET("/manage/v1/organization/alert_subscriptions", { params: { query }, signal }),
        ),
      ),
    [admin],
  );
  const subscriptions = useLoad(load);
  const close = () => ask(null);
  const pathOf = ({ id }: AlertSubscription) => ({ path: { alert_subscription_id: id } });
  const test = (subscription: AlertSubscription) =>
    act.run(async () => {
      await content(admin.POST(`${SUBSCRIPTION}/test`, { params: pathOf(subscription) }));
      setTests(tests + 1);
    });
  const remove = async (subscription: AlertSubscription) => {
    await content(admin.DELETE(SUBSCRIPTION, { params: pathOf(subscription) }));
    subscriptions.reload();
    setTests(tests + 1);
  };
  const rotate = async (subscription: AlertSubscription) => {
    const header = { "Idempotency-Key": idempotencyKey() };
    const rotated = await content(
      admin.POST(`${SUBSCRIPTION}/rotate_secret`, {
        params: { ...pathOf(subscription), header },
        body: {},
      }),
    );
    subscriptions.reload();
    return rotated.secret ?? null;
  };
  return (
    <Page
      title="Alerts"
      about="Alerts reach people or programs when a cap or the credit runs out, when a policy matches often, and when requests stay without a final cost."
      actions={
        <button
          type="button"
          className="button button-main"
          onClick={() => ask({ verb: "create" })}
        >
          New alert
        </button>
      }
    >
      <Panel title="Who receives alerts">
        {act.failure !== null && <Refusal failure={act.failure} />}
        <Loaded of={subscriptions}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty next={{ title: "Send alerts", run: () => ask({ verb: "create" }) }}>
                No alerts are sent yet. Send them to a webhook or by e-mail, for example when a cap
                is nearly used up.
              </Empty>
            ) : (
              <Table
                caption="Who receives alerts"
                columns={subscriptionColumns(act.isBusy, test, ask)}
                rows={items}
                keyOf={({ id }) => id}
              />
            )
          }
        </Loaded>
      </Panel>
      <Deliveries key={tests} />
      {asked?.verb === "create" && <SetAlert onSaved={subscriptions.reload} onClose={close} />}
      {asked?.verb === "edit" && (
        <SetAlert known={asked.subscription} onSaved={subscriptions.reload} onClose={close} />
      )}
      {asked?.verb === "show" && <NewSecret secret={asked.secret} onClose={close} />}
      {asked?.verb === "delete" && (
        <Confirmation
          title={`Delete “${asked.subscription.name}”?`}
          verb="Delete alert"
          isGrave
          onConfirm={() => remove(asked.subscription)}
          onClose={close}
        >
          Alerts that are still pending are not delivered, and its deliveries leave the list below.
        </Confirmation>
      )}
      {asked?.verb === "rotate" && (
        <RotateSecret subscription={asked.subscription} rotate={rotate} ask={ask} />
      )}
    </Page>
  );
}

interface RotateSecretProperties {
  readonly subscription: AlertSubscription;
  readonly rotate: (subscription: AlertSubscription) => Promise<string | null>;
  readonly ask: (asked: Asked | null) => void;
}

function RotateSecret({ subscription, rotate, ask }: RotateSecretProperties) {
  const secret = useRef<string | null>(null);
  return (
    <Confirmation
      title={`New secret for “${subscription.name}”?`}
      verb="Replace secret"
      onConfirm={async () => {
        secret.current = await rotate(subscription);
      }}
      onClose={() => ask(secret.current === null ? null : { verb: "show", secret: secret.current })}
    >
      For a day, alerts are signed with both secrets. Give the new one to your receiver in that
      time.
    </Confirmation>
  );
}

function subscriptionColumns(
  isBusy: boolean,
  test: (subscription: AlertSubscription) => void,
  ask: (asked: Asked) => void,
): ReadonlyArray<Column<AlertSubscription>> {
  return [
    { title: "Name", cell: ({ name }) => <span className="anywhere">{name}</span> },
    {
      title: "Sent to",
      cell: ({ url, emails }) => <span className="anywhere">{url ?? emails.join(", ")}</span>,
    },
    { title: "About", cell: (subscription) => phrasesOf(subscription).join("; ") },
    {
      title: "",
      cell: (subscription) => (
        <div className="row row-end">
          <button
            type="button"
            className="button button-plain"
            disabled={isBusy}
            aria-label={`Send a test alert to ${subscription.name}`}
            onClick={() => test(subscription)}
          >
            Test
          </button>
          {(["edit", "rotate", "delete"] as const)
            .filter((verb) => verb !== "rotate" || subscription.url !== null)
            .map((verb) => (
              <button
                key={verb}
                type="button"
                className="button button-plain"
                aria-label={`${TITLES[verb]} ${subscription.name}`}
                onClick={() => ask({ verb, subscription })}
              >
                {verb === "rotate" ? "New secret" : TITLES[verb]}
              </button>
            ))}
        </div>
      ),
    },
  ];
}

const TONES = { pending: "warn", delivered: "good", failed: "bad", withheld: "bad" } as const;

const deliveryColumns = (
  isBusy: boolean,
  retry: (delivery: AlertDelivery) => void,
): ReadonlyArray<Column<AlertDelivery>> => [
  { title: "Alert", cell: ({ text }) => <span className="anywhere">{text}</span> },
  { title: "Raised", cell: ({ created_at }) => <When at={created_at} /> },
  {
    title: "State",
    cell: ({ status, last_error }) => (
      <>
        <Badge tone={TONES[status]}>{status}</Badge>
        {last_error !== null && <span className="quiet"> {last_error}</span>}
      </>
    ),
  },
  { title: "Attempts", cell: ({ attempts }) => attempts, isNumeric: true },
  { title: "Next attempt", cell: ({ next_attempt_at }) => <When at={next_attempt_at} /> },
  {
    title: "",
    cell: (delivery) =>
      (delivery.status === "failed" || delivery.status === "withheld") && (
        <button
          type="button"
          className="button button-plain"
          disabled={isBusy}
          onClick={() => retry(delivery)}
        >
          Try again
        </button>
      ),
  },
];

function Deliveries() {
  const { admin } = useSession();
  const [reads, setReads] = useState(0);
  const act = useAct();
  const retry = ({ subscription_id }: AlertDelivery) =>
    act.run(async () => {
      const params = { path: { alert_subscription_id: subscription_id } };
      await content(admin.POST(`${SUBSCRIPTION}/retry`, { params }));
      setReads(reads + 1);
    });
  // biome-ignore lint/correctness/useExhaustiveDependencies: a refresh reads again.
  const read = useCallback(
    (after: string | null, signal?: AbortSignal) =>
      content(
        admin.GET("/manage/v1/organization/alert_deliveries", {
          params: { query: after === null ? {} : { after } },
          ...(signal === undefined ? {} : { signal }),
        }),
      ),
    [admin, reads],
  );
  return (
    <Panel
      title="Deliveries"
      actions={
        <button type="button" className="button button-small" onClick={() => setReads(reads + 1)}>
          Refresh
        </button>
      }
    >
      {act.failure !== null && <Refusal failure={act.failure} />}
      <Paged read={read}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty>No alert was raised in the last 30 days.</Empty>
          ) : (
            <Table
              caption="Deliveries"
              columns={deliveryColumns(act.isBusy, retry)}
              rows={rows}
              keyOf={({ id }) => id}
            />
          )
        }
      </Paged>
    </Panel>
  );
}
