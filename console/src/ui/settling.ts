/** What somebody is typing, once they pause. */

import { useEffect, useState } from "react";

export function useSettled<T>(value: T, pauseMs: number): T {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), pauseMs);
    return () => clearTimeout(timer);
  }, [value, pauseMs]);
  return settled;
}
