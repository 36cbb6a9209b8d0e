/** What makes a rule hard to judge, said while it is being written. */

import { useCallback } from "react";
import { content } from "../../api/client";
import type { PolicyRemark } from "../../api/types";
import { type Loading, useLoad } from "../../ui/loading";
import { Refusal } from "../../ui/refusal";
import { useSession } from "../../ui/session";
import { useSettled } from "../../ui/settling";

const PAUSE_MS = 400;

type Remarks = readonly PolicyRemark[];

/** Null for a rule that is empty. */
export function useAdvice(rule: string): Loading<Remarks | null> {
  const { admin } = useSession();
  const settled = useSettled(rule, PAUSE_MS);
  // Another rule is another function, and the answer about the one before is abandoned.
  const load = useCallback(
    async (signal: AbortSignal) => {
      if (settled.trim() === "") return null;
      const { data } = await content(
        admin.POST("/manage/v1/organization/policy_rules/lint", {
          body: { rule: settled },
          signal,
        }),
      );
      return data;
    },
    [admin, settled],
  );
  return useLoad(load);
}

export function Advice({ of: { value, failure, reload } }: { of: Loading<Remarks | null> }) {
  return (
    <div className="advice" role="status" aria-label="Advice">
      {failure !== null && <Refusal failure={failure} onRetry={reload} />}
      {value !== null && <Advised remarks={value} />}
    </div>
  );
}

/** That it is no question yet is said by the field itself. */
function Advised({ remarks }: { remarks: Remarks }) {
  if (remarks.length === 0) {
    return <p className="quiet">No advice: nothing in the rule is known to mislead a judge.</p>;
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
