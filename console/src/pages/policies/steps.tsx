/** From a draft to what applies, and back. */

import { useState } from "react";
import { answer, content } from "../../api/client";
import { isStale, isUnjudged } from "../../api/failure";
import type { Policy } from "../../api/types";
import { Confirmation } from "../../ui/confirmation";
import { CheckField } from "../../ui/fields";
import { useSession } from "../../ui/session";
import { whenPaused } from "./drafting";
import { SCOPES } from "./words";

type Step = "publish" | "pause" | "resume";

const TITLES: Readonly<Record<Step, string>> = {
  publish: "Publish",
  pause: "Pause",
  resume: "Resume",
};

interface StepsProperties {
  readonly policy: Policy;
  readonly hasEdits: boolean;
  readonly onPolicy: (policy: Policy) => void;
  readonly onConflict: () => Promise<void>;
}

export function Steps({ policy, hasEdits, onPolicy, onConflict }: StepsProperties) {
  const { admin } = useSession();
  const [asked, ask] = useState<Step | null>(null);
  /** Null until the judge had no answer. */
  const [refuses, setRefuses] = useState<boolean | null>(null);
  const [matchesAll, setMatchesAll] = useState(false);
  const [selecting, setSelecting] = useState(0);
  const params = { path: { policy_id: policy.id } };
  const body = { revision: policy.revision };
  const pause = async () => {
    const request = { params, body };
    const paused = await answer(admin.POST("/v1/organization/policies/{policy_id}/pause", request));
    setSelecting(Number(paused.headers.get("x-tollhouse-selecting-requests")));
    return whenPaused(policy, paused.data);
  };
  const putInForce = async (step: "publish" | "resume") => {
    const request = { params, body: { ...body, refuses_until_judged: refuses ?? false } };
    const path = `/manage/v1/organization/policies/{policy_id}/${step}` as const;
    const { preflight, ...known } = await content(admin.POST(path, request));
    setMatchesAll(preflight?.outcome === "match");
    return known;
  };
  const take = async (step: Step) => {
    try {
      onPolicy(step === "pause" ? await pause() : await putInForce(step));
    } catch (thrown) {
      if (isUnjudged(thrown)) setRefuses((before) => before ?? false);
      if (!isStale(thrown)) throw thrown;
      await onConflict();
    }
  };
  const close = () => {
    ask(null);
    setRefuses(null);
  };
  return (
    <div className="row steps">
      {matchesAll && (
        <p className="notice notice-warn" role="status">
          The judge matched the harmless text “Hello.”: test the policy on texts of yours.
        </p>
      )}
      {hasEdits && <span className="quiet">Save the draft to publish it.</span>}
      {policy.state === "paused" && selecting > 0 && (
        <span className="quiet" role="status">
          {selecting === 1 ? "1 recent request" : `${selecting} recent requests`} selected this
          policy by policy_ids. Such requests now go on without it.
        </span>
      )}
      {policy.state === "paused" && (
        <button type="button" className="button" onClick={() => ask("resume")}>
          Resume
        </button>
      )}
      {(policy.state === "monitoring" || policy.state === "enforcing") && (
        <button type="button" className="button" onClick={() => ask("pause")}>
          Pause
        </button>
      )}
      <button
        type="button"
        className="button button-main"
        disabled={hasEdits || !policy.has_unpublished_changes}
        onClick={() => ask("publish")}
      >
        Publish
      </button>
      {asked !== null && (
        <Confirmation
          title={`${TITLES[asked]} “${policy.name}”?`}
          verb={TITLES[asked]}
          onConfirm={() => take(asked)}
          onClose={close}
        >
          {consequence(asked, policy)}
          {refuses !== null && (
            <CheckField
              label="Refuse every request until the judge can answer"
              isChecked={refuses}
              onValue={setRefuses}
            />
          )}
        </Confirmation>
      )}
    </div>
  );
}

function consequence(step: Step, policy: Policy): string {
  if (step === "pause")
    return "The policy stops applying until you resume it, also to requests that select it.";
  if (step === "resume") return "The judge is asked first, then the published version applies.";
  const version = (policy.current_version ?? 0) + 1;
  if (policy.state === "paused") return `It becomes version ${version} and stays paused.`;
  const effect = policy.draft.mode === "enforcing" ? "Matches are refused" : "Matches are recorded";
  return `The judge is asked first. It becomes version ${version}. ${effect}. Scope: ${SCOPES[policy.draft.scope].toLowerCase()}.`;
}
