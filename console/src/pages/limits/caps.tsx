/** Spending caps: how full they are, set and removed. */

import { useCallback, useState } from "react";
import { content } from "../../api/client";
import type { Names } from "../../api/names";
import type { SpendingLimit } from "../../api/types";
import { walkList } from "../../api/walking";
import { Confirmation } from "../../ui/confirmation";
import { Empty, Panel } from "../../ui/data";
import { Loaded, useLoad } from "../../ui/loading";
import { useNames } from "../../ui/names";
import { useSession } from "../../ui/session";
import { CapMeter, PERIODS } from "./cap-meter";
import { idsOf, scopeName } from "./scope";
import { SetCap } from "./set-cap";

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
            <Empty next={{ title: "Set the first cap", run: () => ask({ verb: "set" }) }}>
              No spending cap is set: all of the credit can be spent.
            </Empty>
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
