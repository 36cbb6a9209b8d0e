/** Colours of the style sheet for what is drawn on a canvas. */

import { useSyncExternalStore } from "react";

export const SERIES_COLOURS = 8;

const DARK = window.matchMedia("(prefers-color-scheme: dark)");

/** Whether it is dark; whoever draws draws again when that changes. */
export function useDarkness(): boolean {
  return useSyncExternalStore(
    (listener) => {
      DARK.addEventListener("change", listener);
      return () => DARK.removeEventListener("change", listener);
    },
    () => DARK.matches,
  );
}

/** What a colour of the style sheet is now: a canvas knows no variables. */
export function colour(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const resolved = getComputedStyle(probe).color;
  probe.remove();
  return resolved;
}

/** The class of a swatch that has the colour of a series. */
export function seriesName(index: number): string {
  return `series-${(index % SERIES_COLOURS) + 1}`;
}
