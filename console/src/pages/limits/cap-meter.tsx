/** How full a cap is: what is used, and what is held by requests under way. */

import type { ReactNode } from "react";
import type { Names } from "../../api/names";
import type { SpendingLimit } from "../../api/types";
import { picoOf, share, shown } from "../../base/money";
import { Badge, Money } from "../../ui/data";
import { scopeName } from "./scope";

export const PERIODS = {
  day: "today",
  week: "this week",
  month: "this month",
  lifetime: "in total",
} as const;

interface CapMeterProperties {
  readonly cap: SpendingLimit;
  readonly names: Names;
  readonly actions?: ReactNode;
}

export function CapMeter({ cap, names, actions }: CapMeterProperties) {
  const limit = picoOf(cap.limit.value);
  const used = picoOf(cap.used.value);
  const held = picoOf(cap.held.value);
  const isFull = used + held >= limit;
  const title = `${scopeName(cap, names)}, ${PERIODS[cap.period]}`;
  return (
    <li>
      <div className="row row-apart">
        <span>{title}</span>
        <span className="row">
          {isFull && <Badge tone="bad">full</Badge>}
          {!isFull && cap.is_alerting && <Badge tone="warn">above {cap.alert_percent} %</Badge>}
          <span className="number">
            <Money of={used} /> of <Money of={limit} />
          </span>
          {actions}
        </span>
      </div>
      <div
        className={`meter${isFull ? " meter-full" : cap.is_alerting ? " meter-alert" : ""}`}
        role="img"
        aria-label={`${title}: ${shown(used)} used and ${shown(held)} held of ${shown(limit)}`}
      >
        <span style={{ width: `${share(used, limit) * 100}%` }} />
        <span className="held" style={{ width: `${share(held, limit) * 100}%` }} />
      </div>
    </li>
  );
}
