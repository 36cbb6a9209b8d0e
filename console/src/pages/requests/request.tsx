/** One request: how it ended, what it cost, and where its time went. */

import { useCallback } from "react";
import { content } from "../../api/client";
import type { RequestDetails, RequestRecord } from "../../api/types";
import { exactMoment } from "../../base/days";
import { seriesName } from "../../ui/colours";
import { Count, Money, Panel } from "../../ui/data";
import { Loaded, useLoad } from "../../ui/loading";
import { useNames } from "../../ui/names";
import { Link } from "../../ui/navigation";
import { Page } from "../../ui/page";
import { useSession } from "../../ui/session";
import { Judgements, RefusedBy } from "./refused";
import { Remedy } from "./remedy";
import { answerJudging, duration, MEANINGS, type Stretch, stretches } from "./timing";
import { Ending, StatusBadge } from "./words";

export function Request({ id }: { id: string }) {
  const { admin } = useSession();
  const load = useCallback(
    (signal: AbortSignal) =>
      content(
        admin.GET("/manage/v1/organization/requests/{request_id}", {
          params: { path: { request_id: id } },
          signal,
        }),
      ),
    [admin, id],
  );
  const request = useLoad(load);
  return (
    <Page
      title="Request"
      trail={<Link to={{ page: "requests" }}>Requests</Link>}
      about={<code className="anywhere">{id}</code>}
    >
      <Loaded of={request}>
        {(record) => (
          <div className="stack">
            <Panel title="How it ended">
              <div className="form">
                <Remedy record={record} />
                <Facts record={record} />
              </div>
            </Panel>
            <RefusedBy policies={record.blocked_by} />
            <Panel title={`Where ${duration(record.timings.total_ms)} went`}>
              <Timing
                parts={stretches(record.timings)}
                judgingMs={answerJudging(record.evaluations)}
              />
            </Panel>
            <Judgements evaluations={record.evaluations} />
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function Facts({ record }: { record: RequestDetails }) {
  const names = useNames();
  return (
    <dl className="facts">
      <dt>Status</dt>
      <dd>
        <StatusBadge status={record.status} /> {record.status === 499 && "the caller disconnected"}
      </dd>
      <dt>Outcome</dt>
      <dd>
        <Ending record={record} isWhole />
      </dd>
      {record.error_param !== null && (
        <>
          <dt>Wrong parameter</dt>
          <dd>
            <code className="anywhere">{record.error_param}</code>
          </dd>
        </>
      )}
      <dt>When</dt>
      <dd>{exactMoment(record.created_at)}</dd>
      <dt>Operation</dt>
      <dd>
        <code>{record.operation}</code> {record.stream ? "as a stream" : ""}
      </dd>
      <dt>Model</dt>
      <dd>{record.model ?? "–"}</dd>
      <dt>Engine</dt>
      <dd>
        {record.backend ?? "–"} {record.replica !== null && <code>{record.replica}</code>}
      </dd>
      <dt>Tokens</dt>
      <dd>
        <Tokens tokens={record.tokens} />{" "}
        {record.estimated && (
          <span className="quiet">estimated: the engine did not report the usage</span>
        )}
      </dd>
      <dt>Cost</dt>
      <dd>{record.cost === null ? "not known yet" : <Money of={record.cost.value} />}</dd>
      <dt>Project</dt>
      <dd>
        <Link to={{ page: "project", id: record.project_id }}>
          {names.project(record.project_id)}
        </Link>
      </dd>
      <dt>Key</dt>
      <dd>
        <Link
          to={{
            page: "requests",
            search: { project: record.project_id, key: record.api_key_id, range: "30d" },
          }}
        >
          {names.key(record.api_key_id)}
        </Link>
      </dd>
    </dl>
  );
}

function Tokens({ tokens }: { tokens: RequestRecord["tokens"] }) {
  if (tokens.input === null && tokens.output === null) return "not known";
  return (
    <>
      <Count of={tokens.input ?? 0} /> input, <Count of={tokens.cached_input ?? 0} /> cached input,{" "}
      <Count of={tokens.output ?? 0} /> output
    </>
  );
}

interface TimingProperties {
  readonly parts: readonly Stretch[];
  /** The time of policies on the answer, which is part of the others. */
  readonly judgingMs: number | null;
}

function Timing({ parts, judgingMs }: TimingProperties) {
  const label = parts.map(({ step, ms }) => `${step} ${duration(ms)}`).join(", ");
  return (
    <div className="form">
      <div className="timing" role="img" aria-label={label}>
        {parts.map(({ step, share }, index) => (
          <span key={step} className={seriesName(index)} style={{ width: `${share * 100}%` }} />
        ))}
      </div>
      <dl className="facts">
        {parts.map(({ step, ms }, index) => (
          <div key={step} className="fact">
            <dt>
              <span className={`swatch ${seriesName(index)}`} /> {step}
            </dt>
            <dd>
              <span className="number">{duration(ms)}</span>{" "}
              <span className="quiet">{MEANINGS[step]}</span>
            </dd>
          </div>
        ))}
        {judgingMs !== null && (
          <div className="fact">
            <dt>of these, judging</dt>
            <dd>
              <span className="number">{duration(judgingMs)}</span>{" "}
              <span className="quiet">policies on the answer</span>
            </dd>
          </div>
        )}
      </dl>
    </div>
  );
}
