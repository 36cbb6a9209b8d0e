/** What projects or keys spent this month, and what their caps leave. */

import { useCallback } from "react";
import { type Api, content } from "../../api/client";
import { Failure } from "../../api/failure";
import type { SpendingLimit } from "../../api/types";
import { walkList, walkReport } from "../../api/walking";
import { type Instant, monthOf } from "../../base/days";
import { type PicoUsd, picoOf } from "../../base/money";
import { type Loading, useLoad } from "../../ui/loading";
import { useNow } from "../../ui/now";
import { useSession } from "../../ui/session";

const DAYS_MAX = 31;

export type Spender = "project_id" | "api_key_id";

export interface Spending {
  /** By ID; null if the Admin key may not read costs. */
  readonly spent: ReadonlyMap<string, PicoUsd> | null;
  /** The cap of each ID that leaves least; null if the Admin key may not read caps. */
  readonly caps: ReadonlyMap<string, SpendingLimit> | null;
}

export function useSpending(by: Spender): Loading<Spending> {
  const { admin } = useSession();
  const now = useNow();
  const load = useCallback(
    async (signal: AbortSignal) => {
      const [spent, caps] = await Promise.all([
        readable(readSpent(admin, by, now, signal)),
        readable(readCaps(admin, by, signal)),
      ]);
      return { spent, caps };
    },
    [admin, by, now],
  );
  return useLoad(load);
}

async function readSpent(admin: Api, by: Spender, now: Instant, signal: AbortSignal) {
  const buckets = await walkReport((cursor) => {
    const query = { start_time: monthOf(now), group_by: [by], limit: DAYS_MAX, ...cursor };
    return content(admin.GET("/v1/organization/costs", { params: { query }, signal }));
  });
  const spent = new Map<string, PicoUsd>();
  for (const { results } of buckets) {
    for (const { [by]: id, amount } of results) {
      if (id) spent.set(id, (spent.get(id) ?? 0n) + picoOf(amount.value));
    }
  }
  return spent;
}

async function readCaps(admin: Api, by: Spender, signal: AbortSignal) {
  const { items } = await walkList((query) =>
    content(admin.GET("/manage/v1/organization/spending_limits", { params: { query }, signal })),
  );
  const caps = new Map<string, SpendingLimit>();
  for (const cap of items) {
    const id = cap[by];
    const known = id === null ? undefined : caps.get(id);
    if (id !== null && (known === undefined || left(cap) < left(known))) caps.set(id, cap);
  }
  return caps;
}

function left({ remaining }: SpendingLimit): PicoUsd {
  return picoOf(remaining.value);
}

async function readable<T>(read: Promise<T>): Promise<T | null> {
  try {
    return await read;
  } catch (thrown) {
    if (thrown instanceof Failure) return null;
    throw thrown;
  }
}
