/** One figure of the overview, in whatever state it is. */

import type { ReactNode } from "react";
import { Loaded, type Loading } from "../../ui/loading";

/** What a line that goes by days shows. */
export const DAYS_SHOWN = 30;

interface FigureProperties<T> {
  readonly title: string;
  readonly of: Loading<T>;
  readonly children: (value: T) => ReactNode;
}

export function Figure<T>({ title, of, children }: FigureProperties<T>) {
  return (
    <section className="figure" aria-label={title}>
      <h2>{title}</h2>
      <Loaded of={of}>{children}</Loaded>
    </section>
  );
}
