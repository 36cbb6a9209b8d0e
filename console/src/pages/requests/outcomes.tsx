/** How requests ended, in the words of the API: each request has one outcome. */

import type { RequestRecord, RequestRollupBucket } from "../../api/types";
import { count } from "../../base/counts";
import { Choices } from "../../ui/fields";
import type { Wanted } from "./filters";
import { type Traffic, trafficIn } from "./traffic";

type Outcome = RequestRecord["outcome"];

export const OUTCOME_WORDS: Readonly<Record<Outcome, string>> = {
  succeeded: "Succeeded",
  failed: "Failed",
  refused: "Refused",
  client_error: "Client error",
};

const CHOICES = [
  { value: "all", title: "All", of: "requests" },
  { value: "succeeded", title: "Succeeded", of: "succeeded" },
  { value: "failed", title: "Failed", of: "failed" },
  { value: "refused", title: "Refused", of: "refused" },
  { value: "client_error", title: "Client errors", of: "clientErrors" },
] as const satisfies ReadonlyArray<{
  readonly value: Wanted["outcome"];
  readonly title: string;
  readonly of: keyof Traffic;
}>;

const MEANINGS: Readonly<Record<Wanted["outcome"], string>> = {
  all: "Each request succeeded, failed, was refused or was a client error.",
  succeeded: "The model answered.",
  failed: "The gateway or a model’s engine was at fault.",
  refused: "A policy, a permission, a rate limit, a cap or the credit stopped it.",
  client_error: "The request was wrong, or its caller disconnected.",
};

interface OutcomeChoicesProperties {
  readonly wanted: Wanted;
  readonly want: (name: "outcome", value: string) => void;
  /** What is counted beside each outcome, if it is known. */
  readonly counted: readonly RequestRollupBucket[] | null;
}

export function OutcomeChoices({ wanted, want, counted }: OutcomeChoicesProperties) {
  const traffic = counted === null ? null : trafficIn(...counted);
  const options = CHOICES.map(({ value, title, of }) => ({
    value,
    title: traffic === null ? title : `${title} ${count(traffic[of])}`,
  }));
  return (
    <div className="outcomes">
      <Choices
        label="Outcome"
        value={wanted.outcome}
        options={options}
        onValue={(value) => want("outcome", value)}
      />
      <p className="quiet small">{MEANINGS[wanted.outcome]}</p>
    </div>
  );
}
