/** A conversation over the real route, with a project's key, paid for like any other call. */

import {
  type FormEvent,
  type KeyboardEvent,
  useCallback,
  useEffect,
  useRef,
  useState,
} from "react";
import { converse } from "../../api/chat";
import { type Api, content } from "../../api/client";
import { readCost } from "../../api/cost";
import { asFailure, type Failure, isAbandoned } from "../../api/failure";
import type { Model } from "../../api/types";
import { Count, Empty, Money, Panel } from "../../ui/data";
import { SelectField, TextArea, TextField } from "../../ui/fields";
import { Loaded, useLoad } from "../../ui/loading";
import { Link } from "../../ui/navigation";
import { Page } from "../../ui/page";
import { WithProjectKey } from "../../ui/project-key";
import { Refusal } from "../../ui/refusal";
import { useSession } from "../../ui/session";
import { asked, ending, heard, messagesOf, type Turn, unasked } from "./talk";

const OUTPUT_TOKENS = "512";

export function Playground() {
  return (
    <Page
      title="Playground"
      about="Calls on this page are real: they are authenticated, limited, evaluated by policies and charged to the key’s project."
    >
      <WithProjectKey>{(customer) => <Ready customer={customer} />}</WithProjectKey>
    </Page>
  );
}

function Ready({ customer }: { customer: Api }) {
  const load = useCallback(
    (signal: AbortSignal) => content(customer.GET("/v1/models", { signal })),
    [customer],
  );
  const models = useLoad(load);
  return (
    <Loaded of={models}>
      {({ data }) => {
        const usable = data.filter(({ access }) => access.available);
        return usable.length === 0 ? (
          <Empty>This key may not call any model.</Empty>
        ) : (
          <Room customer={customer} models={usable} />
        );
      }}
    </Loaded>
  );
}

interface Wishes {
  readonly model: string;
  readonly instructions: string;
  readonly outputTokens: string;
}

function Room({ customer, models }: { customer: Api; models: readonly Model[] }) {
  const first = models.find(({ is_ready }) => is_ready) ?? models[0];
  const [wishes, wish] = useState<Wishes>({
    model: first?.id ?? "",
    instructions: "",
    outputTokens: OUTPUT_TOKENS,
  });
  const talking = useTalk(customer, wishes);
  return (
    <div className="playground">
      <Panel title="Conversation">
        <Talk talk={talking.talk} isBusy={talking.isBusy} />
        {talking.failure !== null && (
          <div className="spaced">
            <Refusal failure={talking.failure} />
          </div>
        )}
        <Asking talking={talking} isSound={isBound(wishes.outputTokens)} />
      </Panel>
      <Panel title="Settings">
        <Settings models={models} wishes={wishes} onWishes={wish} />
      </Panel>
    </div>
  );
}

function isBound(text: string): boolean {
  return /^[1-9]\d{0,5}$/.test(text);
}

interface Talking {
  readonly talk: readonly Turn[];
  readonly isBusy: boolean;
  readonly failure: Failure | null;
  /** Resolves to whether the model answered, if only in part. */
  ask(question: string): Promise<boolean>;
  stop(): void;
  forget(): void;
}

function useTalk(customer: Api, { model, instructions, outputTokens }: Wishes): Talking {
  const [talk, setTalk] = useState<readonly Turn[]>([]);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [abandon, setAbandon] = useState<AbortController | null>(null);
  useEffect(() => () => abandon?.abort(), [abandon]);
  const run = async (question: string, controller: AbortController, onHeard: () => void) => {
    const begun = asked(talk, question);
    setTalk(begun);
    const request = {
      model,
      messages: messagesOf(begun, instructions),
      max_completion_tokens: Number(outputTokens),
    };
    for await (const piece of converse(customer, request, controller.signal)) {
      if (piece.kind === "text") onHeard();
      setTalk((known) => heard(known, piece));
    }
  };
  const ask = (question: string) => {
    const controller = new AbortController();
    setAbandon(controller);
    setFailure(null);
    let isHeard = false;
    const hear = () => {
      isHeard = true;
    };
    return run(question, controller, hear)
      .then(() => true)
      .catch((thrown: unknown) => {
        setTalk(unasked);
        if (!isAbandoned(thrown)) setFailure(asFailure(thrown));
        return isHeard;
      })
      .finally(() => setAbandon(null));
  };
  return {
    talk,
    failure,
    isBusy: abandon !== null,
    ask,
    stop: () => abandon?.abort(),
    forget: () => {
      setTalk([]);
      setFailure(null);
    },
  };
}

function Talk({ talk, isBusy }: { talk: readonly Turn[]; isBusy: boolean }) {
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (talk.length > 0) end.current?.scrollIntoView({ block: "nearest" });
  }, [talk]);
  return (
    <div className="talk" role="log" aria-label="Conversation" aria-busy={isBusy}>
      {talk.length === 0 && <Empty>There are no messages yet.</Empty>}
      {talk.map((turn, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: turns are only ever added at the end.
        <article key={index} className={`turn turn-${turn.role}`}>
          <h3>{turn.role === "user" ? "You" : "Model"}</h3>
          {turn.reasoning !== "" && (
            <details>
              <summary>Reasoning</summary>
              <p className="quiet said">{turn.reasoning}</p>
            </details>
          )}
          <p className="said">{turn.content || "…"}</p>
          {turn.requestId !== "" && (
            <Footnote turn={turn} isDone={!isBusy || index < talk.length - 1} />
          )}
        </article>
      ))}
      <div ref={end} />
    </div>
  );
}

function Footnote({ turn: { usage, finish, requestId }, isDone }: FootnoteProperties) {
  const cost = useCost(requestId, isDone);
  return (
    <p className="footnote">
      {usage !== null && (
        <span>
          <Count of={usage.prompt_tokens} /> input + <Count of={usage.completion_tokens} /> output
          tokens
        </span>
      )}
      {cost !== null && <Money of={cost} />}
      {ending(finish) !== "" && <span>{ending(finish)}</span>}
      <Link to={{ page: "request", id: requestId }}>Request</Link>
    </p>
  );
}

interface FootnoteProperties {
  readonly turn: Turn;
  /** The answer has ended, so that its cost will be recorded. */
  readonly isDone: boolean;
}

/** The cost of an answer, once it is recorded. */
function useCost(requestId: string, isDone: boolean): string | null {
  const { admin } = useSession();
  const [cost, setCost] = useState<string | null>(null);
  useEffect(() => {
    if (!isDone) return;
    const abandon = new AbortController();
    readCost(admin, requestId, abandon.signal).then((read) => {
      if (!abandon.signal.aborted) setCost(read);
    });
    return () => abandon.abort();
  }, [admin, requestId, isDone]);
  return cost;
}

function Asking({ talking, isSound }: { talking: Talking; isSound: boolean }) {
  const [question, setQuestion] = useState("");
  const canAsk = isSound && !talking.isBusy && question.trim() !== "";
  const send = () => {
    if (!canAsk) return;
    setQuestion("");
    // What was not answered comes back, unless something else was typed meanwhile.
    talking.ask(question).then((isAnswered) => {
      if (!isAnswered) setQuestion((typed) => (typed === "" ? question : typed));
    });
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    send();
  };
  const press = (event: KeyboardEvent) => {
    // Enter also ends the input of a character that needs several keys.
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    <form className="form" onSubmit={submit}>
      <TextArea
        label="Message"
        hint="Press Enter to send, Shift and Enter for a new line."
        rows={3}
        value={question}
        onValue={setQuestion}
        onKeyDown={press}
      />
      <div className="row row-end">
        <button
          type="button"
          className="button"
          disabled={talking.isBusy || talking.talk.length === 0}
          onClick={talking.forget}
        >
          Start over
        </button>
        {talking.isBusy ? (
          <button type="button" className="button button-main" onClick={talking.stop}>
            Stop
          </button>
        ) : (
          <button type="submit" className="button button-main" disabled={!canAsk}>
            Send
          </button>
        )}
      </div>
    </form>
  );
}

interface SettingsProperties {
  readonly models: readonly Model[];
  readonly wishes: Wishes;
  readonly onWishes: (wishes: Wishes) => void;
}

function Settings({ models, wishes, onWishes }: SettingsProperties) {
  const isSound = isBound(wishes.outputTokens);
  return (
    <div className="form">
      <SelectField
        label="Model"
        value={wishes.model}
        options={models.map(({ id, display_name, is_ready }) => ({
          value: id,
          title: is_ready ? display_name : `${display_name} (not ready)`,
        }))}
        onValue={(model) => onWishes({ ...wishes, model })}
      />
      <TextArea
        label="Instructions (optional)"
        rows={4}
        value={wishes.instructions}
        onValue={(instructions) => onWishes({ ...wishes, instructions })}
      />
      <TextField
        label="Maximum output tokens"
        hint="Credit for this many tokens is held before the call."
        {...(isSound ? {} : { fault: "Enter a whole number of at least 1." })}
        inputMode="numeric"
        value={wishes.outputTokens}
        onValue={(outputTokens) => onWishes({ ...wishes, outputTokens })}
      />
    </div>
  );
}
