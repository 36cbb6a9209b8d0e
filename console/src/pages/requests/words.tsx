/** How a request ended. */

import { Fragment } from "react";
import { errorPage } from "../../api/failure";
import type { RequestRecord } from "../../api/types";
import { Badge } from "../../ui/data";
import { Link } from "../../ui/navigation";

const CULPRITS = {
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
      {CULPRITS[record.failed_by]}
      {record.error_code !== null && (
        <>
          {" "}
          <a href={errorPage(record.error_code) ?? ""} target="_blank" rel="noopener">
            <code className="quiet anywhere">{record.error_code}</code>
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
