/** New requests on top of those that are known, for as long as somebody watches. */

import { useEffect, useState } from "react";
import { asFailure, type Failure, isAbandoned } from "../../api/failure";
import type { RequestRecord } from "../../api/types";
import type { Instant } from "../../base/days";

export const POLL_MS = 2_000;
export const SHOWN_MAX = 200;
/** A request is listed when it ends, and by the instant at which it began. */
const LONGEST_SECONDS = 900;

/** Each request once, newest first; what was read last counts. */
export function merged(
  known: readonly RequestRecord[],
  read: readonly RequestRecord[],
): RequestRecord[] {
  const byId = new Map([...known, ...read].map((record) => [record.id, record]));
  const sorted = [...byId.values()].sort((one, other) => (one.id < other.id ? 1 : -1));
  return sorted.slice(0, SHOWN_MAX);
}

/** Where the next reading begins; null while nothing is known. */
export function nextStart(known: readonly RequestRecord[]): Instant | null {
  const [newest] = known;
  return newest === undefined ? null : Math.max(newest.created_at - LONGEST_SECONDS, 0);
}

export type ReadSince = (
  start: Instant | null,
  signal: AbortSignal,
) => Promise<{ readonly data: readonly RequestRecord[] }>;

export interface Live {
  readonly rows: readonly RequestRecord[] | null;
  readonly failure: Failure | null;
}

/** Read every two seconds while the tab is seen. Another function is another list. */
export function useLive(read: ReadSince): Live {
  const [live, setLive] = useState<Live>({ rows: null, failure: null });
  useEffect(() => {
    const abandon = new AbortController();
    let known: readonly RequestRecord[] = [];
    let isReading = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const poll = async () => {
      if (isReading || document.hidden) return;
      clearTimeout(timer);
      isReading = true;
      const next = await readNext(read, known, abandon.signal);
      isReading = false;
      if (abandon.signal.aborted) return;
      known = next.rows ?? known;
      setLive(next);
      if (!isRefused(next.failure)) timer = setTimeout(poll, POLL_MS);
    };
    document.addEventListener("visibilitychange", poll);
    void poll();
    return () => {
      abandon.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", poll);
    };
  }, [read]);
  return live;
}

/** A key that was refused once is refused again: polling on would only fill the log. */
function isRefused(failure: Failure | null): boolean {
  return failure !== null && [401, 403].includes(failure.explanation.status);
}

async function readNext(
  read: ReadSince,
  known: readonly RequestRecord[],
  signal: AbortSignal,
): Promise<Live> {
  try {
    const { data } = await read(nextStart(known), signal);
    return { rows: merged(known, data), failure: null };
  } catch (thrown) {
    const rows = known.length > 0 ? known : null;
    return { rows, failure: isAbandoned(thrown) ? null : asFailure(thrown) };
  }
}
