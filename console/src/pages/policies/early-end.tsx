/** Whether a match in a part of an answer ends it. */

import type { PolicyRemark } from "../../api/types";
import { CheckField } from "../../ui/fields";
import { type Draft, faultsOf, judgesAnswers } from "./drafting";

interface EarlyEndProperties {
  readonly draft: Draft;
  readonly onValue: (endsEarly: boolean) => void;
  /** What is advised about the rule. */
  readonly remarks: readonly PolicyRemark[];
}

export function EarlyEnd({ draft, onValue, remarks }: EarlyEndProperties) {
  const fault = faultsOf(draft).endsEarly;
  const absence = remarks.find(({ weakness }) => weakness === "absence");
  return (
    <div className="advised">
      <CheckField
        label="End a matching answer while it is being written"
        hint={
          fault ??
          (judgesAnswers(draft)
            ? "If the policy enforces, a match in the beginning of an answer ends the answer. Do not use this for a question about something that is missing: it can still come."
            : "Only for policies that evaluate responses.")
        }
        isChecked={draft.endsEarly}
        onValue={onValue}
        // Two edits, one laid on the other, can leave it checked: then it can be taken back.
        disabled={!judgesAnswers(draft) && !draft.endsEarly}
      />
      <div className="advice" role="status" aria-label="Advice on ending answers">
        {draft.endsEarly && absence !== undefined && (
          <ul>
            <li>{absence.advice}</li>
          </ul>
        )}
      </div>
    </div>
  );
}
