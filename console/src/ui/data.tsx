/** Small pieces that show one value each. */

import type { ReactNode } from "react";
import { count } from "../base/counts";
import { type Instant, moment, relative } from "../base/days";
import { decimalOf, type PicoUsd, picoOf, shown } from "../base/money";
import { useNow } from "./now";

/** An amount for reading; the exact one is its title. */
export function Money({ of }: { of: string | PicoUsd }) {
  const pico = typeof of === "string" ? picoOf(of) : of;
  return (
    <span className="number" title={`${decimalOf(pico)} USD`}>
      {shown(pico)}
    </span>
  );
}

export function Count({ of }: { of: number }) {
  return <span className="number">{count(of)}</span>;
}

/** How long ago, or how soon; the instant itself is its title. */
export function When({ at, none = "never" }: { at: Instant | null; none?: string }) {
  const now = useNow();
  if (at === null) return <span className="quiet">{none}</span>;
  return (
    <time className="nobreak" dateTime={new Date(at * 1000).toISOString()} title={moment(at)}>
      {relative(at, now)}
    </time>
  );
}

/** A name on one line, cut where it is long; all of it is its title. */
export function Clipped({ text, title }: { text: string; title: string }) {
  return (
    <span className="clipped" title={title === text ? text : `${text} ${title}`}>
      {text}
    </span>
  );
}

type Tone = "plain" | "good" | "warn" | "bad";

export function Badge({ tone, children }: { tone: Tone; children: ReactNode }) {
  return <span className={tone === "plain" ? "badge" : `badge badge-${tone}`}>{children}</span>;
}

interface PanelProperties {
  readonly title: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

export function Panel({ title, actions, children }: PanelProperties) {
  return (
    <section className="panel" aria-label={title}>
      <div className="panel-head">
        <h2>{title}</h2>
        {actions !== undefined && <div className="row">{actions}</div>}
      </div>
      {children}
    </section>
  );
}

interface EmptyProperties {
  readonly children: ReactNode;
  /** What to do next, if somebody can do it here. */
  readonly next?: { readonly title: string; run(): void } | undefined;
}

/** Nothing is there yet, and what to do about it. */
export function Empty({ children, next }: EmptyProperties) {
  return (
    <div className="empty">
      {children}
      {next !== undefined && (
        <button type="button" className="button" onClick={next.run}>
          {next.title}
        </button>
      )}
    </div>
  );
}
