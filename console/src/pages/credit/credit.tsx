/** Credit: the balance, what it is made of, and test payments in a sandbox. */

import { type ReactNode, useCallback, useState } from "react";
import { content } from "../../api/client";
import type { CreditEntry } from "../../api/types";
import { picoOf } from "../../base/money";
import { Badge, Empty, Money, Panel, When } from "../../ui/data";
import { Loaded, useLoad } from "../../ui/loading";
import { Link } from "../../ui/navigation";
import { useOrganization } from "../../ui/organization";
import { Page } from "../../ui/page";
import { Paged } from "../../ui/paged";
import { useSession } from "../../ui/session";
import { type Column, Table } from "../../ui/table";
import { TestPayment } from "./test-payment";

const PAGE_SIZE = 25;

const KINDS: Readonly<Record<CreditEntry["kind"], string>> = {
  backfill: "Past usage",
  correction: "Correction",
  promotional: "Promotion",
  sandbox: "Sandbox credit",
  test_payment: "Test payment",
};

export function Credit() {
  const organization = useOrganization();
  const [isPaying, setPaying] = useState(false);
  const [payments, setPayments] = useState(0);
  return (
    <Page
      title="Credit"
      about={
        <>
          Requests are paid from prepaid credit. <Link to={{ page: "costs" }}>See their costs</Link>
        </>
      }
      actions={
        organization?.is_sandbox && (
          <button type="button" className="button button-main" onClick={() => setPaying(true)}>
            Test payment
          </button>
        )
      }
    >
      <Balance key={`balance-${payments}`} />
      <Entries key={`entries-${payments}`} />
      {isPaying && (
        <TestPayment
          onPaid={() => setPayments((count) => count + 1)}
          onClose={() => setPaying(false)}
        />
      )}
    </Page>
  );
}

function Balance() {
  const { admin } = useSession();
  const load = useCallback(
    (signal: AbortSignal) => content(admin.GET("/manage/v1/organization/credits", { signal })),
    [admin],
  );
  const credits = useLoad(load);
  return (
    <Panel title="Balance" actions={<Link to={{ page: "limits" }}>Limits and caps</Link>}>
      <Loaded of={credits}>
        {({ balance, held, available, unsettled, is_alerting }) => (
          <dl className="amounts">
            <Amount title="Available" of={available.value}>
              {is_alerting ? <Badge tone="warn">low</Badge> : "What new requests can use"}
            </Amount>
            <Amount title="Balance" of={balance.value}>
              Paid in, less what was spent
            </Amount>
            <Amount title="Held" of={held.value}>
              {picoOf(unsettled.value) > 0n ? (
                <>
                  <Money of={unsettled.value} /> of it for requests without a final cost yet
                </>
              ) : (
                "For requests that are not settled yet"
              )}
            </Amount>
          </dl>
        )}
      </Loaded>
    </Panel>
  );
}

interface AmountProperties {
  readonly title: string;
  readonly of: string;
  readonly children: ReactNode;
}

function Amount({ title, of, children }: AmountProperties) {
  return (
    <div>
      <dt>{title}</dt>
      <dd className="value">
        <Money of={of} />
      </dd>
      <dd className="note">{children}</dd>
    </div>
  );
}

const COLUMNS: ReadonlyArray<Column<CreditEntry>> = [
  { title: "When", cell: ({ created_at }) => <When at={created_at} /> },
  { title: "Kind", cell: ({ kind }) => KINDS[kind] },
  { title: "Reason", cell: ({ reason }) => <span className="anywhere">{reason}</span> },
  {
    title: "By",
    cell: ({ actor }) => (actor.type === "operator" ? "Operator" : "Admin key"),
  },
  { title: "Amount", cell: ({ amount }) => <Money of={amount.value} />, isNumeric: true },
];

function Entries() {
  const { admin } = useSession();
  const read = useCallback(
    (after: string | null, signal?: AbortSignal) =>
      content(
        admin.GET("/manage/v1/organization/credits/entries", {
          params: { query: { limit: PAGE_SIZE, ...(after === null ? {} : { after }) } },
          ...(signal === undefined ? {} : { signal }),
        }),
      ),
    [admin],
  );
  return (
    <Panel title="Entries">
      <Paged read={read}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty>
              No credit was granted yet. The operator grants it with{" "}
              <code>tollhouse credits grant</code>.
            </Empty>
          ) : (
            <Table caption="Entries" columns={COLUMNS} rows={rows} keyOf={({ id }) => id} />
          )
        }
      </Paged>
    </Panel>
  );
}
