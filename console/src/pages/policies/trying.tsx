/** A text on trial: what the draft and what is published make of it. Nothing is kept. */

import { type FormEvent, useState } from "react";
import { content } from "../../api/client";
import type { Policy, PolicyVerdict } from "../../api/types";
import { Panel } from "../../ui/data";
import { TextArea } from "../../ui/fields";
import { useAct } from "../../ui/loading";
import { Refusal } from "../../ui/refusal";
import { useSession } from "../../ui/session";
import { type Draft, draftOf, faultsOf, triedOf } from "./drafting";
import { JudgeName } from "./judge";
import { Verdicts } from "./verdicts";

const TEXT_LENGTH_MAX = 20_000;

interface TryingProperties {
  /** Null for a policy that is not saved yet. */
  readonly policy: Policy | null;
  /** As it stands in the editor, saved or not. */
  readonly draft: Draft;
}

interface Tried {
  readonly text: string;
  readonly rule: string;
  readonly verdicts: readonly PolicyVerdict[];
}

export function Trying({ policy, draft }: TryingProperties) {
  const { admin } = useSession();
  const [text, setText] = useState("");
  const [tried, setTried] = useState<Tried | null>(null);
  const act = useAct();
  const attempt = (event: FormEvent) => {
    event.preventDefault();
    act.run(async () => {
      setTried(null);
      const { data } = await content(
        policy === null
          ? admin.POST("/manage/v1/organization/policy_rules/test", {
              body: { text, ...triedOf(draft) },
            })
          : admin.POST("/manage/v1/organization/policies/{policy_id}/test", {
              params: { path: { policy_id: policy.id } },
              body: { text, rule: draft.rule },
            }),
      );
      setTried({ text, rule: draft.rule, verdicts: data });
    });
  };
  const isChanged = tried !== null && (tried.text !== text || tried.rule !== draft.rule);
  return (
    <Panel title="Test it on a text" actions={<JudgeName />}>
      <form className="form" onSubmit={attempt}>
        <TextArea
          label="Text"
          hint={hintFor(policy, draft)}
          value={text}
          onValue={setText}
          rows={4}
          maxLength={TEXT_LENGTH_MAX}
        />
        <div className="row row-end">
          <button
            type="submit"
            className="button"
            disabled={act.isBusy || text === "" || !isTestable(policy, draft)}
          >
            {act.isBusy ? "Asking the judge…" : "Judge it"}
          </button>
        </div>
        {act.failure !== null && <Refusal failure={act.failure} />}
        <div role="status" aria-label="Verdicts">
          {tried !== null && <Verdicts of={tried.verdicts} isOld={isChanged} />}
        </div>
      </form>
    </Panel>
  );
}

function isTestable(policy: Policy | null, draft: Draft): boolean {
  const faults = faultsOf(draft);
  return faults.rule === undefined && (policy !== null || faults.threshold === undefined);
}

/** The rule is tried as it is written; the threshold of a saved draft as it was saved. */
function hintFor(policy: Policy | null, draft: Draft): string {
  if (faultsOf(draft).rule !== undefined)
    return "The rule must be a question that ends with a question mark.";
  if (policy === null) return "The text is not stored. The test uses the draft as you see it.";
  if (draft.threshold !== draftOf(policy).threshold) {
    return "The test uses the rule as you see it. A changed threshold applies after you save it.";
  }
  return "The text is not stored. The test uses the rule as you see it, saved or not.";
}
