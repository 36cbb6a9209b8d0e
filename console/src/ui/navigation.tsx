/** The address bar as the one memory of where somebody is. */

import { type AnchorHTMLAttributes, type MouseEvent, useSyncExternalStore } from "react";
import { type Place, pathOf } from "../base/places";

const MOVED = "tollhouse:moved";

function subscribe(listener: () => void): () => void {
  window.addEventListener("popstate", listener);
  window.addEventListener(MOVED, listener);
  return () => {
    window.removeEventListener("popstate", listener);
    window.removeEventListener(MOVED, listener);
  };
}

export function usePath(): string {
  return useSyncExternalStore(subscribe, () => window.location.pathname);
}

export function go(place: Place): void {
  window.history.pushState(null, "", pathOf(place));
  window.dispatchEvent(new Event(MOVED));
}

/** A choice that is part of the address, so that a link leads to the same view. */
export function useChoice<T extends string>(
  name: string,
  known: readonly T[],
  first: T,
): [T, (value: T) => void] {
  const [text, choose] = useText(name);
  return [known.find((value) => value === text) ?? first, choose];
}

/** The same for any text; empty if the address does not hold it. */
export function useText(name: string): [string, (value: string) => void] {
  const text = useSyncExternalStore(
    subscribe,
    () => new URLSearchParams(window.location.search).get(name) ?? "",
  );
  const choose = (value: string) => {
    const query = new URLSearchParams(window.location.search);
    if (value === "") query.delete(name);
    else query.set(name, value);
    const search = query.size === 0 ? "" : `?${query}`;
    window.history.replaceState(null, "", window.location.pathname + search);
    window.dispatchEvent(new Event(MOVED));
  };
  return [text, choose];
}

type LinkProperties = { to: Place } & Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href">;

/** An ordinary link that does not load the page anew, since that would forget the key. */
export function Link({ to, onClick, ...rest }: LinkProperties) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const opensElsewhere = event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
    if (opensElsewhere || rest.target !== undefined || event.button !== 0 || event.defaultPrevented)
      return;
    event.preventDefault();
    go(to);
  };
  return <a href={pathOf(to)} onClick={follow} {...rest} />;
}
