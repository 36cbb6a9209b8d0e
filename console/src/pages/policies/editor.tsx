/** The draft of a policy. Whoever was slower sees what was changed meanwhile, and loses nothing. */

import type { FormEvent } from "react";
import { content } from "../../api/client";
import { isStale } from "../../api/failure";
import type { Policy } from "../../api/types";
import { Panel } from "../../ui/data";
import { useAct } from "../../ui/loading";
import { Refusal } from "../../ui/refusal";
import { useSession } from "../../ui/session";
import { Conflict } from "./conflict";
import { DraftFields } from "./draft-fields";
import { type Draft, draftOf, editOf, faultsOf, isSame, onTop } from "./drafting";

interface EditorProperties {
  /** What the draft was begun from. */
  readonly policy: Policy;
  readonly draft: Draft;
  readonly onDraft: (draft: Draft) => void;
  /** What the gateway holds by now, once it is known to be something else. */
  readonly latest: Policy | null;
  readonly onPolicy: (policy: Policy) => void;
  readonly onConflict: () => Promise<void>;
}

export function Editor(properties: EditorProperties) {
  const { policy, draft, onDraft, latest, onPolicy, onConflict } = properties;
  const { admin } = useSession();
  const before = draftOf(policy);
  const act = useAct();
  const hasEdits = !isSame(before, draft);
  const save = (event: FormEvent) => {
    event.preventDefault();
    act.run(async () => {
      try {
        const saved = await content(
          admin.PATCH("/manage/v1/organization/policies/{policy_id}", {
            params: { path: { policy_id: policy.id } },
            body: editOf(before, draft, policy.revision),
          }),
        );
        onDraft(draftOf(saved));
        onPolicy(saved);
      } catch (thrown) {
        if (!isStale(thrown)) throw thrown;
        await onConflict();
      }
    });
  };
  const begin = (from: Policy, next: Draft) => {
    onDraft(next);
    onPolicy(from);
  };
  const isSound = Object.keys(faultsOf(draft)).length === 0;
  return (
    <Panel title="Draft">
      <form className="form" onSubmit={save}>
        <DraftFields isSaved draft={draft} onDraft={onDraft} />
        {latest !== null && (
          <Conflict
            before={before}
            theirs={draftOf(latest)}
            mine={draft}
            onTheirs={() => begin(latest, draftOf(latest))}
            onMine={() => begin(latest, onTop(before, draftOf(latest), draft))}
          />
        )}
        {act.failure !== null && <Refusal failure={act.failure} />}
        <div className="row row-end">
          <button
            type="button"
            className="button"
            disabled={!hasEdits || act.isBusy}
            onClick={() => onDraft(before)}
          >
            Discard edits
          </button>
          <button
            type="submit"
            className="button button-main"
            disabled={!hasEdits || act.isBusy || !isSound || latest !== null}
          >
            Save draft
          </button>
        </div>
      </form>
    </Panel>
  );
}
