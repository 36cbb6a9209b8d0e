/** The first page: what is left, what was spent, and what is about to be full. */

import { useCallback } from "react";
import { answer, content } from "../../api/client";
import type { CreditEntry, Credits } from "../../api/types";
import { walkList } from "../../api/walking";
import { DAY_SECONDS, HOUR_SECONDS, lastDays, monthOf } from "../../base/days";
import { height, picoOf } from "../../base/money";
import { Count, Money } from "../../ui/data";
import { type Loading, useLoad } from "../../ui/loading";
import { useNow } from "../../ui/now";
import { Page } from "../../ui/page";
import { useSession } from "../../ui/session";
import { Sparkline } from "../../ui/sparkline";
import { DAYS_SHOWN, Figure } from "./figure";
import {
  balances,
  type DaySpend,
  growth,
  type Hour,
  spendByDay,
  spentThisMonth,
  spentToday,
  traffic,
  trafficByHour,
} from "./figures";
import { FullestCaps } from "./fullest-caps";
import { MatchesFigure } from "./matches-figure";

const BUCKETS_MAX = 62;

export function Overview() {
  const credit = useCredit();
  const costs = useCosts();
  const hours = useTraffic();
  return (
    <Page title="Overview" about="Your organization now. Days and months are in UTC.">
      <div className="figures">
        <CreditFigure credit={credit} costs={costs.value?.days ?? []} />
        <HeldFigure credit={credit} />
        <TodayFigure costs={costs} />
        <MonthFigure costs={costs} />
        <RequestsFigure hours={hours} />
        <FailuresFigure hours={hours} />
        <TokensFigure hours={hours} />
        <MatchesFigure />
      </div>
      <FullestCaps />
    </Page>
  );
}

interface Credit {
  readonly credits: Credits;
  readonly entries: readonly CreditEntry[];
}

function useCredit(): Loading<Credit> {
  const { admin } = useSession();
  const load = useCallback(
    async (signal: AbortSignal) => {
      const [credits, entries] = await Promise.all([
        content(admin.GET("/manage/v1/organization/credits", { signal })),
        walkList((query) =>
          content(
            admin.GET("/manage/v1/organization/credits/entries", { params: { query }, signal }),
          ),
        ),
      ]);
      return { credits, entries: entries.items };
    },
    [admin],
  );
  return useLoad(load);
}

interface Costs {
  readonly days: readonly DaySpend[];
  readonly unsettled: number;
}

function useCosts(): Loading<Costs> {
  const { admin } = useSession();
  const now = useNow();
  const load = useCallback(
    async (signal: AbortSignal) => {
      const start_time = Math.min(monthOf(now), lastDays(DAYS_SHOWN, now).start);
      const query = { start_time, limit: BUCKETS_MAX };
      const { data, headers } = await answer(
        admin.GET("/v1/organization/costs", { params: { query }, signal }),
      );
      const unsettled = Number(headers.get("x-tollhouse-unsettled-requests") ?? "0");
      return { days: spendByDay(data.data), unsettled };
    },
    [admin, now],
  );
  return useLoad(load);
}

function useTraffic(): Loading<Hour[]> {
  const { admin } = useSession();
  const now = useNow();
  const load = useCallback(
    async (signal: AbortSignal) => {
      const query = { start_time: now - DAY_SECONDS + HOUR_SECONDS };
      const page = await content(
        admin.GET("/manage/v1/organization/request_rollups", { params: { query }, signal }),
      );
      return trafficByHour(page.data);
    },
    [admin, now],
  );
  return useLoad(load);
}

function CreditFigure({ credit, costs }: { credit: Loading<Credit>; costs: readonly DaySpend[] }) {
  return (
    <Figure title="Available credit" of={credit}>
      {({ credits, entries }) => (
        <>
          <p className="value">
            <Money of={credits.available.value} />
          </p>
          <p className="note">
            Balance: <Money of={credits.balance.value} />
          </p>
          <Sparkline
            heights={balances(picoOf(credits.balance.value), costs, entries).map(height)}
            isBad={credits.is_alerting}
          />
        </>
      )}
    </Figure>
  );
}

function HeldFigure({ credit }: { credit: Loading<Credit> }) {
  return (
    <Figure title="Held" of={credit}>
      {({ credits }) => (
        <>
          <p className="value">
            <Money of={credits.held.value} />
          </p>
          <p className="note">
            {picoOf(credits.unsettled.value) === 0n ? (
              "For requests that are not settled yet"
            ) : (
              <>
                <Money of={credits.unsettled.value} /> of it for requests without a final cost yet
              </>
            )}
          </p>
        </>
      )}
    </Figure>
  );
}

function TodayFigure({ costs }: { costs: Loading<Costs> }) {
  const now = useNow();
  return (
    <Figure title="Spent today" of={costs}>
      {({ days, unsettled }) => (
        <>
          <p className="value">
            <Money of={spentToday(days, now)} />
          </p>
          <p className="note">
            {unsettled === 0 ? (
              `The last ${DAYS_SHOWN} days`
            ) : (
              <>
                Without <Count of={unsettled} /> {unsettled === 1 ? "request" : "requests"} that{" "}
                {unsettled === 1 ? "has" : "have"} no final cost yet
              </>
            )}
          </p>
          <Sparkline heights={days.slice(-DAYS_SHOWN).map(({ spent }) => height(spent))} />
        </>
      )}
    </Figure>
  );
}

function MonthFigure({ costs }: { costs: Loading<Costs> }) {
  const now = useNow();
  return (
    <Figure title="Spent this month" of={costs}>
      {({ days }) => (
        <>
          <p className="value">
            <Money of={spentThisMonth(days, now)} />
          </p>
          <p className="note">Cumulative, by day</p>
          <Sparkline heights={growth(days, now).map(height)} />
        </>
      )}
    </Figure>
  );
}

function RequestsFigure({ hours }: { hours: Loading<Hour[]> }) {
  return (
    <Figure title="Requests" of={hours}>
      {(value) => (
        <>
          <p className="value">
            <Count of={traffic(value).requests} />
          </p>
          <p className="note">In the last 24 hours</p>
          <Sparkline heights={value.map(({ requests }) => requests)} />
        </>
      )}
    </Figure>
  );
}

function FailuresFigure({ hours }: { hours: Loading<Hour[]> }) {
  return (
    <Figure title="Failed requests" of={hours}>
      {(value) => (
        <>
          <p className="value">
            <Count of={traffic(value).failed} />
          </p>
          <p className="note">
            In the last 24 hours, and <Count of={traffic(value).refused} /> refused requests
          </p>
          <Sparkline heights={value.map(({ failed }) => failed)} isBad />
        </>
      )}
    </Figure>
  );
}

function TokensFigure({ hours }: { hours: Loading<Hour[]> }) {
  return (
    <Figure title="Tokens" of={hours}>
      {(value) => (
        <>
          <p className="value">
            <Count of={traffic(value).tokens} />
          </p>
          <p className="note">Input and output, in the last 24 hours</p>
          <Sparkline heights={value.map(({ tokens }) => tokens)} />
        </>
      )}
    </Figure>
  );
}
