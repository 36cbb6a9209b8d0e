/** What is read from the gateway, in all of its states. */

import { type ReactNode, useCallback, useEffect, useState } from "react";
import { asFailure, type Failure, isAbandoned } from "../api/failure";
import { Refusal } from "./refusal";

export interface Loading<T> {
  readonly value: T | null;
  readonly failure: Failure | null;
  readonly isBusy: boolean;
  reload(): void;
}

interface Shown<T> {
  readonly value: T | null;
  readonly failure: Failure | null;
  readonly isBusy: boolean;
}

/** Read, and read again when `load` is another function; until then the old value stays. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>): Loading<T> {
  const [shown, show] = useState<Shown<T>>({ value: null, failure: null, isBusy: true });
  const [round, setRound] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another round is a reason to read.
  useEffect(() => {
    const abandon = new AbortController();
    show((before) => ({ ...before, isBusy: true }));
    load(abandon.signal).then(
      (value) => {
        if (!abandon.signal.aborted) show({ value, failure: null, isBusy: false });
      },
      (thrown: unknown) => {
        if (abandon.signal.aborted || isAbandoned(thrown)) return;
        show({ value: null, failure: asFailure(thrown), isBusy: false });
      },
    );
    return () => abandon.abort();
  }, [load, round]);
  const reload = useCallback(() => setRound((count) => count + 1), []);
  return { ...shown, reload };
}

interface LoadedProperties<T> {
  readonly of: Loading<T>;
  readonly children: (value: T) => ReactNode;
}

/** The value, or in its place that it is awaited, or why it cannot be shown. */
export function Loaded<T>({ of, children }: LoadedProperties<T>) {
  if (of.failure !== null) return <Refusal failure={of.failure} onRetry={of.reload} />;
  if (of.value === null) return <Waiting />;
  return (
    <div className="busy" aria-busy={of.isBusy}>
      {children(of.value)}
    </div>
  );
}

export function Waiting() {
  return (
    <div className="waiting" role="status" aria-label="Loading">
      <span />
      <span />
      <span />
    </div>
  );
}

export interface Act {
  readonly isBusy: boolean;
  readonly failure: Failure | null;
  run(work: () => Promise<void>): void;
}

/** Something that a person does once at a time, and that may be refused. */
export function useAct(): Act {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const run = (work: () => Promise<void>) => {
    if (isBusy) return;
    setBusy(true);
    setFailure(null);
    work()
      .catch((thrown: unknown) => setFailure(asFailure(thrown)))
      .finally(() => setBusy(false));
  };
  return { isBusy, failure, run };
}
