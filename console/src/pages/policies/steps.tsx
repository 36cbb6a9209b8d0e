/** From a draft to what applies, and back. */

import { useState } from "react";
import { content } from "../../api/client";
import { isStale } from "../../api/failure";
import type { Policy } from "../../api/types";
import { Confirmation } from "../../ui/confirmation";
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
  const take = async (step: Step) => {
    const request = {
      params: { path: { policy_id: policy.id } },
      body: { revision: policy.revision },
    };
    try {
      onPolicy(
        step === "pause"
          ? whenPaused(
              policy,
              await content(admin.POST("/v1/organization/policies/{policy_id}/pause", request)),
            )
          : await content(
              admin.POST(`/manage/v1/organization/policies/{policy_id}/${step}`, request),
            ),
      );
    } catch (thrown) {
      if (!isStale(thrown)) throw thrown;
      await onConflict();
    }
  };
  return (
    <div className="row steps">
      {hasEdits && <span className="quiet">Save the draft to publish it.</span>}
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
          onClose={() => ask(null)}
        >
          {consequence(asked, policy)}
        </Confirmation>
      )}
    </div>
  );
}

function consequence(step: Step, policy: Policy): string {
  if (step === "pause") return "The policy stops applying until you resume it.";
  if (step === "resume") return "The published version applies again.";
  const version = (policy.current_version ?? 0) + 1;
  if (policy.state === "paused") return `It becomes version ${version} and stays paused.`;
  const effect = policy.draft.mode === "enforcing" ? "Matches are refused" : "Matches are recorded";
  return `It becomes version ${version}. ${effect}. Scope: ${SCOPES[policy.draft.scope].toLowerCase()}.`;
}
