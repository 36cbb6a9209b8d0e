/** What policies found. */

import { useCallback } from "react";
import { type Api, content } from "../../api/client";
import type { Policy, PolicyRollup } from "../../api/types";
import { walkList } from "../../api/walking";
import { daysIn, lastDays, type Span } from "../../base/days";
import { total } from "../../base/lists";
import { Count } from "../../ui/data";
import { type Loading, useLoad } from "../../ui/loading";
import { useNow } from "../../ui/now";
import { useSession } from "../../ui/session";
import { Sparkline } from "../../ui/sparkline";
import { DAYS_SHOWN, Figure } from "./figure";
import { matchesByDay } from "./figures";

/** Each policy is asked by itself: an overview does not ask hundreds. */
const POLICIES_ASKED_MAX = 20;

interface Matches {
  readonly byDay: readonly number[];
  readonly published: number;
}

/** Those of the last `days`, today included. */
export function MatchesFigure({ days }: { days: number }) {
  return (
    <Figure
      title="Policy matches"
      of={useMatches()}
      to={{ page: "policies" }}
      value={({ byDay }) => <Count of={total(byDay.slice(-days))} />}
      note={({ byDay, published }) =>
        published === 0 ? (
          "No policy is published"
        ) : (
          <>
            {days === 1 ? "Today" : `In ${days} days`}
            {days < DAYS_SHOWN && (
              <>
                , and <Count of={total(byDay)} /> in {DAYS_SHOWN} days
              </>
            )}
            {published > POLICIES_ASKED_MAX && ` by ${POLICIES_ASKED_MAX} of your policies`}
          </>
        )
      }
      line={({ byDay }) => <Sparkline heights={byDay} />}
    />
  );
}

function useMatches(): Loading<Matches> {
  const { admin } = useSession();
  const now = useNow();
  const load = useCallback(
    async (signal: AbortSignal) => {
      const { items } = await walkList((query) =>
        content(admin.GET("/manage/v1/organization/policies", { params: { query }, signal })),
      );
      const published = items.filter((policy) => policy.published !== null);
      const span = lastDays(DAYS_SHOWN, now);
      const asked = published.slice(0, POLICIES_ASKED_MAX);
      const rollups = await Promise.all(
        asked.map((policy) => rollupsOf(admin, policy, span, signal)),
      );
      return { byDay: matchesByDay(rollups.flat(), daysIn(span)), published: published.length };
    },
    [admin, now],
  );
  return useLoad(load);
}

async function rollupsOf(
  admin: Api,
  { id }: Policy,
  { start }: Span,
  signal: AbortSignal,
): Promise<PolicyRollup[]> {
  const page = await content(
    admin.GET("/manage/v1/organization/policies/{policy_id}/rollups", {
      params: { path: { policy_id: id }, query: { start_time: start } },
      signal,
    }),
  );
  return page.data;
}
