/** Columns of projects and keys: what was spent this month, and what a cap leaves. */

import { Money } from "../../ui/data";
import type { Column } from "../../ui/table";
import type { Spending } from "./spending";

const EACH = {
  day: "a day",
  week: "a week",
  month: "a month",
  lifetime: "in total",
} as const;

export function spendingColumns<Row extends { readonly id: string }>(
  spending: Spending | null,
): ReadonlyArray<Column<Row>> {
  return [
    {
      title: "This month",
      cell: ({ id }) => {
        if (!spending?.spent) return <span className="quiet">–</span>;
        return <Money of={spending.spent.get(id) ?? 0n} />;
      },
      isNumeric: true,
    },
    {
      title: "Left of cap",
      cell: ({ id }) => <Left spending={spending} id={id} />,
      isNumeric: true,
    },
  ];
}

function Left({ spending, id }: { spending: Spending | null; id: string }) {
  if (!spending?.caps) return <span className="quiet">–</span>;
  const cap = spending.caps.get(id);
  if (cap === undefined) return <span className="quiet">no cap</span>;
  return (
    <>
      <Money of={cap.remaining.value} />
      <div className="quiet small">
        of <Money of={cap.limit.value} /> {EACH[cap.period]}
      </div>
    </>
  );
}
