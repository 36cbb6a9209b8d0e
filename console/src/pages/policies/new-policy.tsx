/** A first draft. */

import { type FormEvent, useState } from "react";
import { content, idempotencyKey } from "../../api/client";
import { Panel } from "../../ui/data";
import { useAct } from "../../ui/loading";
import { go, Link } from "../../ui/navigation";
import { Page } from "../../ui/page";
import { Refusal } from "../../ui/refusal";
import { useSession } from "../../ui/session";
import { DraftFields } from "./draft-fields";
import { creationOf, faultsOf, NEW_DRAFT } from "./drafting";
import { Trying } from "./trying";

export function NewPolicy() {
  const { admin } = useSession();
  const [draft, setDraft] = useState(NEW_DRAFT);
  const [key] = useState(idempotencyKey);
  const act = useAct();
  const create = (event: FormEvent) => {
    event.preventDefault();
    act.run(async () => {
      const policy = await content(
        admin.POST("/v1/organization/policies", {
          params: { header: { "Idempotency-Key": key } },
          body: creationOf(draft),
        }),
      );
      go({ page: "policy", id: policy.id });
    });
  };
  const isSound = Object.keys(faultsOf(draft)).length === 0;
  return (
    <Page
      title="New policy"
      trail={<Link to={{ page: "policies" }}>Policies</Link>}
      about="Test the rule on a text before you save it. A saved draft applies to no request until you publish it."
    >
      <div className="halves">
        <Panel title="Draft">
          <form className="form" onSubmit={create}>
            <DraftFields isSaved={false} draft={draft} onDraft={setDraft} />
            {act.failure !== null && <Refusal failure={act.failure} />}
            <div className="row row-end">
              <button
                type="submit"
                className="button button-main"
                disabled={act.isBusy || !isSound}
              >
                Save as draft
              </button>
            </div>
          </form>
        </Panel>
        <Trying policy={null} draft={draft} />
      </div>
    </Page>
  );
}
