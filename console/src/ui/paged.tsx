/** A list that grows by one page at a time, for as long as somebody wants older ones. */

import { type ReactNode, useCallback, useEffect, useState } from "react";
import type { ListPage } from "../api/walking";
import { Loaded, useAct, useLoad } from "./loading";
import { Refusal } from "./refusal";

type Read<T> = (after: string | null, signal?: AbortSignal) => Promise<ListPage<T>>;

interface PagedProperties<T> {
  /** One page, from the beginning or after an ID; another function is another list. */
  readonly read: Read<T>;
  readonly children: (rows: readonly T[]) => ReactNode;
}

export function Paged<T>({ read, children }: PagedProperties<T>) {
  const load = useCallback((signal: AbortSignal) => read(null, signal), [read]);
  const first = useLoad(load);
  return (
    <Loaded of={first}>
      {(page) => (
        <Pages first={page} readMore={read}>
          {children}
        </Pages>
      )}
    </Loaded>
  );
}

interface PagesProperties<T> {
  readonly first: ListPage<T>;
  readonly readMore: Read<T>;
  readonly children: (rows: readonly T[]) => ReactNode;
}

function Pages<T>({ first, readMore, children }: PagesProperties<T>) {
  const [more, setMore] = useState<ReadonlyArray<ListPage<T>>>([]);
  const act = useAct();
  // biome-ignore lint/correctness/useExhaustiveDependencies: what follows belongs to its first page.
  useEffect(() => setMore([]), [first]);
  const pages = [first, ...more];
  const last = pages.at(-1) ?? first;
  const goOn = () =>
    act.run(async () => {
      const next = await readMore(last.last_id);
      setMore((known) => [...known, next]);
    });
  return (
    <div className="stack">
      {children(pages.flatMap(({ data }) => data))}
      {act.failure !== null && <Refusal failure={act.failure} />}
      {last.has_more && (
        <div className="row">
          <button type="button" className="button" disabled={act.isBusy} onClick={goOn}>
            Show older ones
          </button>
        </div>
      )}
    </div>
  );
}
