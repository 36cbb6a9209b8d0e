/** One figure of the overview, in whatever state it is; it leads to what it counts. */

import { type ReactNode, useId } from "react";
import type { Place } from "../../base/places";
import { Loaded, type Loading } from "../../ui/loading";
import { Link } from "../../ui/navigation";

/** What a line that goes by days shows. */
export const DAYS_SHOWN = 30;

interface FigureProperties<T> {
  readonly title: string;
  readonly of: Loading<T>;
  readonly to: Place;
  readonly value: (of: T) => ReactNode;
  readonly note: (of: T) => ReactNode;
  readonly line?: (of: T) => ReactNode;
}

export function Figure<T>({ title, of, to, value, note, line }: FigureProperties<T>) {
  const id = useId();
  return (
    <section className="figure" aria-label={title}>
      <h2 id={`${id}-title`}>{title}</h2>
      <Loaded of={of}>
        {(loaded) => (
          <>
            <p className="value">
              <Link to={to} id={`${id}-value`} aria-labelledby={`${id}-title ${id}-value`}>
                {value(loaded)}
              </Link>
            </p>
            <p className="note">{note(loaded)}</p>
            {line?.(loaded)}
          </>
        )}
      </Loaded>
    </section>
  );
}
