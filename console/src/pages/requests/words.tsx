/** How a request ended. */

import { Fragment } from "react";
import { errorPage } from "../../api/failure";
import type { RequestRecord } from "../../api/types";
import { Badge } from "../../ui/data";
import { Link } from "../../ui/navigation";
import { OUTCOME_WORDS } from "./outcomes";

const FAILED_BY = {
  caller: "the caller",
  gateway: "the gateway",
  backend: "the model’s engine",
} as const;

export function StatusBadge({ status }: { status: number }) {
  if (status < 400) return <Badge tone="good">{status}</Badge>;
  return <Badge tone={status < 500 ? "warn" : "bad"}>{status}</Badge>;
}

interface EndingProperties {
  readonly record: RequestRecord;
  /** With the code, also where a policy says all there is to say. */
  readonly isWhole?: boolean;
}

/** How it ended in the words of the API: refused by which policies, or with which code. */
export function Ending({ record, isWhole = false }: EndingProperties) {
  const { outcome, failed_by, error_code, blocked_by } = record;
  const isByPolicy = !isWhole && outcome === "refused" && blocked_by.length > 0;
  const policies = new Map(blocked_by.map(({ id, name }) => [id, name]));
  return (
    <>
      {OUTCOME_WORDS[outcome]}
      {outcome === "failed" && failed_by !== null && ` by ${FAILED_BY[failed_by]}`}
      {isByPolicy && " by"}
      {error_code !== null && !isByPolicy && (
        <>
          {" "}
          <a href={errorPage(error_code) ?? ""} target="_blank" rel="noopener">
            <ErrorCode code={error_code} />
          </a>
        </>
      )}
      {[...policies].map(([id, name]) => (
        <Fragment key={id}>
          {" "}
          <Link to={{ page: "policy", id }}>{name}</Link>
        </Fragment>
      ))}
    </>
  );
}

/** A line may end after an underscore, and nowhere else. */
function ErrorCode({ code }: { code: string }) {
  return (
    <code className="quiet">
      {code.split(/(?<=_)/).map((part) => (
        <Fragment key={part}>
          {part}
          <wbr />
        </Fragment>
      ))}
    </code>
  );
}
