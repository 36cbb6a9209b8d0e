/** The fullest caps, on the first page. */

import { useCallback } from "react";
import { content } from "../../api/client";
import type { SpendingLimit } from "../../api/types";
import { walkList } from "../../api/walking";
import { height, picoOf } from "../../base/money";
import { Empty, Panel } from "../../ui/data";
import { Loaded, useLoad } from "../../ui/loading";
import { useNames } from "../../ui/names";
import { go, Link } from "../../ui/navigation";
import { useSession } from "../../ui/session";
import { CapMeter } from "../limits/cap-meter";

const CAPS_SHOWN = 6;

export function FullestCaps() {
  const { admin } = useSession();
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
  const names = useNames();
  return (
    <Panel title="Spending caps" actions={<Link to={{ page: "limits" }}>All limits and caps</Link>}>
      <Loaded of={caps}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty next={{ title: "Set a cap", run: () => go({ page: "limits" }) }}>
              No spending cap is set: all of the credit can be spent.
            </Empty>
          ) : (
            <ul className="caps">
              {fullest(items).map((cap) => (
                <CapMeter key={cap.id} cap={cap} names={names} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function fullest(caps: readonly SpendingLimit[]): SpendingLimit[] {
  const fill = ({ used, held, limit }: SpendingLimit) =>
    height(picoOf(used.value) + picoOf(held.value)) / (height(picoOf(limit.value)) || 1);
  return [...caps].sort((one, other) => fill(other) - fill(one)).slice(0, CAPS_SHOWN);
}
