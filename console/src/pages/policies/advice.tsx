/** What makes a rule hard to judge, said while it is being written. */

import { useCallback } from "react";
import { content } from "../../api/client";
import type { PolicyRemark } from "../../api/types";
import { useLoad } from "../../ui/loading";
import { Refusal } from "../../ui/refusal";
import { useSession } from "../../ui/session";
import { useSettled } from "../../ui/settling";

const PAUSE_MS = 400;

interface AdviceProperties {
  readonly policyId: string;
  readonly rule: string;
}

export function Advice({ policyId, rule }: AdviceProperties) {
  const { admin } = useSession();
  const settled = useSettled(rule, PAUSE_MS);
  // Another rule is another function, and the answer about the one before is abandoned.
  const load = useCallback(
    async (signal: AbortSignal) => {
      if (settled.trim() === "") return null;
      const { data } = await content(
        admin.POST("/manage/v1/organization/policies/{policy_id}/lint", {
          params: { path: { policy_id: policyId } },
          body: { rule: settled },
          signal,
        }),
      );
      return data;
    },
    [admin, policyId, settled],
  );
  const { value, failure, reload } = useLoad(load);
  return (
    <div className="advice" role="status" aria-label="Advice">
      {failure !== null && <Refusal failure={failure} onRetry={reload} />}
      {value !== null && <Remarks remarks={value} />}
    </div>
  );
}

/** That it is no question yet is said by the field itself. */
function Remarks({ remarks }: { remarks: readonly PolicyRemark[] }) {
  if (remarks.length === 0) {
    return <p className="quiet">Nothing in it is known to mislead a judge.</p>;
  }
  const others = remarks.filter(({ weakness }) => weakness !== "not_a_question");
  if (others.length === 0) return null;
  return (
    <ul>
      {others.map(({ weakness, advice }) => (
        <li key={weakness}>{advice}</li>
      ))}
    </ul>
  );
}
