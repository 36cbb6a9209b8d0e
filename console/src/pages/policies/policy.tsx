/** One policy: the draft, what is published, and the steps between them. */

import { useCallback, useState } from "react";
import { content } from "../../api/client";
import type { Policy as PolicyRecord } from "../../api/types";
import { Confirmation } from "../../ui/confirmation";
import { Badge, When } from "../../ui/data";
import { Loaded, useLoad } from "../../ui/loading";
import { go, Link } from "../../ui/navigation";
import { Page } from "../../ui/page";
import { useSession } from "../../ui/session";
import { Decisions } from "./decisions";
import { DraftNotice } from "./draft-notice";
import { basisPointsOf, draftOf, isSame, percentOf } from "./drafting";
import { Editor } from "./editor";
import { PastScores } from "./past-scores";
import { Published } from "./published";
import { Steps } from "./steps";
import { Trying } from "./trying";
import { STATE_TONES } from "./words";

export function Policy({ id }: { id: string }) {
  const { admin } = useSession();
  const read = useCallback(
    (signal?: AbortSignal) =>
      content(
        admin.GET("/manage/v1/organization/policies/{policy_id}", {
          params: { path: { policy_id: id } },
          ...(signal === undefined ? {} : { signal }),
        }),
      ),
    [admin, id],
  );
  const first = useLoad(read);
  const [changed, setChanged] = useState<PolicyRecord | null>(null);
  const [isDeleting, setDeleting] = useState(false);
  const policy = changed ?? first.value;
  const remove = async () => {
    const params = { path: { policy_id: id } };
    await content(admin.DELETE("/manage/v1/organization/policies/{policy_id}", { params }));
    go({ page: "policies" });
  };
  return (
    <Page
      title={policy?.name ?? "Policy"}
      trail={<Link to={{ page: "policies" }}>Policies</Link>}
      about={policy?.description || undefined}
      actions={
        policy?.current_version === null && (
          <button type="button" className="button button-grave" onClick={() => setDeleting(true)}>
            Delete
          </button>
        )
      }
    >
      <Loaded of={{ ...first, value: policy }}>
        {(known) => <Workbench policy={known} onPolicy={setChanged} readLatest={() => read()} />}
      </Loaded>
      {isDeleting && (
        <Confirmation
          title={`Delete “${policy?.name}”?`}
          verb="Delete policy"
          isGrave
          onConfirm={remove}
          onClose={() => setDeleting(false)}
        >
          The draft is lost. It was never published, so that no request is affected.
        </Confirmation>
      )}
    </Page>
  );
}

interface WorkbenchProperties {
  readonly policy: PolicyRecord;
  readonly onPolicy: (policy: PolicyRecord) => void;
  readonly readLatest: () => Promise<PolicyRecord>;
}

function Workbench({ policy, onPolicy, readLatest }: WorkbenchProperties) {
  const [draft, setDraft] = useState(() => draftOf(policy));
  const [latest, setLatest] = useState<PolicyRecord | null>(null);
  const onConflict = async () => setLatest(await readLatest());
  const take = (taken: PolicyRecord) => {
    setLatest(null);
    onPolicy(taken);
  };
  const hasEdits = !isSame(draftOf(policy), draft);
  return (
    <div className="stack">
      <div className="row row-apart">
        <div className="row">
          <Badge tone={STATE_TONES[policy.state]}>{policy.state}</Badge>
          <span className="quiet">
            Revision {policy.revision}, edited <When at={policy.updated_at} />
          </span>
        </div>
        <Steps policy={policy} hasEdits={hasEdits} onPolicy={take} onConflict={onConflict} />
      </div>
      {policy.published === null && <DraftNotice />}
      <div className="halves">
        <Editor
          policy={policy}
          draft={draft}
          onDraft={setDraft}
          latest={latest}
          onPolicy={take}
          onConflict={onConflict}
        />
        <div className="stack">
          {policy.published !== null && <Published policy={policy} />}
          <Trying policy={policy} draft={draft} />
          {policy.published === null && <Published policy={policy} />}
        </div>
      </div>
      <PastScores
        policyId={policy.id}
        published={policy.published}
        drafted={basisPointsOf(draft.threshold) ?? null}
        onThreshold={(points) => setDraft({ ...draft, threshold: percentOf(points) })}
      />
      <Decisions policyId={policy.id} />
    </div>
  );
}
