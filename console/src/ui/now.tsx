/** The present instant, taken once for a page, so that all of its parts mean the same day. */

import { createContext, use } from "react";
import type { Instant } from "../base/days";

export const NowContext = createContext<Instant | null>(null);

export function useNow(): Instant {
  const now = use(NowContext);
  if (now === null) throw new Error("a page needs the current time");
  return now;
}

export function presentInstant(): Instant {
  return Math.floor(Date.now() / 1000);
}
