/** How a request ended. */

import { Fragment } from "react";
import { errorPage } from "../../api/failure";
import type { RequestRecord } from "../../api/types";
import { Badge } from "../../ui/data";
import { Link } from "../../ui/navigation";

const FAILED_BY = {
  caller: "the caller",
  gateway: "the gateway",
  backend: "the model’s engine",
} as const;

export function StatusBadge({ status }: { status: number }) {
  if (status < 400) return <Badge tone="good">{status}</Badge>;
  return <Badge tone={status < 500 ? "warn" : "bad"}>{status}</Badge>;
}

/** Who failed, with which code, and the policies that refused the request. */
export function Failing({ record }: { record: RequestRecord }) {
  if (record.failed_by === null) return <span className="quiet">none</span>;
  return (
    <>
      {FAILED_BY[record.failed_by]}
      {record.error_code !== null && (
        <>
          {" "}
          <a href={errorPage(record.error_code) ?? ""} target="_blank" rel="noopener">
            <ErrorCode code={record.error_code} />
          </a>
        </>
      )}
      {record.blocked_by.map(({ id, direction, name }) => (
        <Fragment key={`${id} ${direction}`}>
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
