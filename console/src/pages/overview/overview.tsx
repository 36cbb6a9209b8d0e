/** The first page: what is left, what was spent, and what is about to be full. */

import { useCallback } from "react";
import { answer, content } from "../../api/client";
import type { CreditEntry, Credits } from "../../api/types";
import { walkList } from "../../api/walking";
import { type Instant, isoDay, lastDays, monthOf } from "../../base/days";
import { height, picoOf } from "../../base/money";
import type { Search } from "../../base/places";
import { Count, Money } from "../../ui/data";
import { Choices } from "../../ui/fields";
import { type Loading, useLoad } from "../../ui/loading";
import { Link, useChoice } from "../../ui/navigation";
import { useNow } from "../../ui/now";
import { Page } from "../../ui/page";
import { useSession } from "../../ui/session";
import { Sparkline } from "../../ui/sparkline";
import { startOf, RANGES as TRAFFIC_RANGES } from "../requests/filters";
import { trafficIn, useTraffic } from "../requests/traffic";
import { DAYS_SHOWN, Figure } from "./figure";
import { balances, type DaySpend, growth, spendByDay, spentSince } from "./figures";
import { FullestCaps } from "./fullest-caps";
import { MatchesFigure } from "./matches-figure";

const BUCKETS_MAX = 62;

/** A range of the overview: hours of traffic, and days of spending. */
const DAYS = { "24h": 1, "7d": 7, "30d": 30 } as const;

type Range = keyof typeof DAYS;

const RANGES = TRAFFIC_RANGES.flatMap((range) => (range.value === "custom" ? [] : [range]));

export function Overview() {
  const [range, setRange] = useChoice(
    "range",
    RANGES.map(({ value }) => value),
    "24h",
  );
  const credit = useCredit();
  const costs = useCosts();
  const traffic = useTraffic(startOf(range, useNow()));
  return (
    <Page
      title="Overview"
      about="Your organization now. Days and months are in UTC."
      actions={<Choices label="Range" value={range} options={RANGES} onValue={setRange} />}
    >
      <div className="figures">
        <CreditFigure credit={credit} costs={costs.value?.days ?? []} />
        <HeldFigure credit={credit} />
        <SpentFigure costs={costs} range={range} />
        <MonthFigure costs={costs} />
        <RequestsFigure traffic={traffic} range={range} />
        <FailuresFigure traffic={traffic} range={range} />
        <TokensFigure traffic={traffic} range={range} />
        <MatchesFigure days={DAYS[range]} />
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

interface CreditFigureProperties {
  readonly credit: Loading<Credit>;
  readonly costs: readonly DaySpend[];
}

function CreditFigure({ credit, costs }: CreditFigureProperties) {
  return (
    <Figure
      title="Available credit"
      of={credit}
      to={{ page: "credit" }}
      value={({ credits }) => <Money of={credits.available.value} />}
      note={({ credits }) => (
        <>
          Balance: <Money of={credits.balance.value} />
        </>
      )}
      line={({ credits, entries }) => (
        <Sparkline
          heights={balances(picoOf(credits.balance.value), costs, entries).map(height)}
          isBad={credits.is_alerting}
        />
      )}
    />
  );
}

function HeldFigure({ credit }: { credit: Loading<Credit> }) {
  return (
    <Figure
      title="Held"
      of={credit}
      to={{ page: "credit" }}
      value={({ credits }) => <Money of={credits.held.value} />}
      note={({ credits }) =>
        picoOf(credits.unsettled.value) === 0n ? (
          "For requests that are not settled yet"
        ) : (
          <>
            <Money of={credits.unsettled.value} /> of it for requests without a final cost yet
          </>
        )
      }
    />
  );
}

interface SpentFigureProperties {
  readonly costs: Loading<Costs>;
  readonly range: Range;
}

function SpentFigure({ costs, range }: SpentFigureProperties) {
  const now = useNow();
  return (
    <Figure
      title={range === "24h" ? "Spent today" : `Spent in ${DAYS[range]} days`}
      of={costs}
      to={{ page: "costs", search: costsOf(range, now) }}
      value={({ days }) => <Money of={spentSince(days, lastDays(DAYS[range], now).start)} />}
      note={({ unsettled }) =>
        unsettled === 0 ? (
          `By day, the last ${DAYS_SHOWN} days`
        ) : (
          <>
            Without <Count of={unsettled} /> {unsettled === 1 ? "request" : "requests"} that{" "}
            {unsettled === 1 ? "has" : "have"} no final cost yet
          </>
        )
      }
      line={({ days }) => (
        <Sparkline heights={days.slice(-DAYS_SHOWN).map(({ spent }) => height(spent))} />
      )}
    />
  );
}

/** The range of the costs page: days of UTC, so that 24 hours are today. */
function costsOf(range: Range, now: Instant): Search {
  const today = isoDay(now);
  return range === "24h" ? { range: "custom", from: today, to: today } : { range };
}

function MonthFigure({ costs }: { costs: Loading<Costs> }) {
  const now = useNow();
  return (
    <Figure
      title="Spent this month"
      of={costs}
      to={{ page: "costs", search: { range: "month" } }}
      value={({ days }) => <Money of={spentSince(days, monthOf(now))} />}
      note={() => "Cumulative, by day"}
      line={({ days }) => <Sparkline heights={growth(days, now).map(height)} />}
    />
  );
}

interface TrafficFigureProperties {
  readonly traffic: ReturnType<typeof useTraffic>;
  readonly range: Range;
}

function inRange(range: Range): string {
  return range === "24h" ? "In the last 24 hours" : `In the last ${DAYS[range]} days`;
}

function RequestsFigure({ traffic, range }: TrafficFigureProperties) {
  return (
    <Figure
      title="Requests"
      of={traffic}
      to={{ page: "requests", search: { range } }}
      value={(hours) => <Count of={trafficIn(...hours).requests} />}
      note={() => inRange(range)}
      line={(hours) => <Sparkline heights={hours.map((hour) => trafficIn(hour).requests)} />}
    />
  );
}

function FailuresFigure({ traffic, range }: TrafficFigureProperties) {
  const among = (outcome: string) => ({ page: "requests", search: { range, outcome } }) as const;
  return (
    <Figure
      title="Failed requests"
      of={traffic}
      to={among("failed")}
      value={(hours) => <Count of={trafficIn(...hours).failed} />}
      note={(hours) => {
        const { refused, clientErrors } = trafficIn(...hours);
        return (
          <>
            Besides{" "}
            <Link to={among("refused")}>
              <Count of={refused} /> refused
            </Link>{" "}
            and{" "}
            <Link to={among("client_error")}>
              <Count of={clientErrors} /> client {clientErrors === 1 ? "error" : "errors"}
            </Link>
          </>
        );
      }}
      line={(hours) => <Sparkline heights={hours.map((hour) => trafficIn(hour).failed)} isBad />}
    />
  );
}

function TokensFigure({ traffic, range }: TrafficFigureProperties) {
  const now = useNow();
  return (
    <Figure
      title="Tokens"
      of={traffic}
      to={{ page: "costs", search: { ...costsOf(range, now), by: "model" } }}
      value={(hours) => <Count of={trafficIn(...hours).tokens} />}
      note={() => `Input and output, ${inRange(range).toLowerCase()}`}
      line={(hours) => <Sparkline heights={hours.map((hour) => trafficIn(hour).tokens)} />}
    />
  );
}
