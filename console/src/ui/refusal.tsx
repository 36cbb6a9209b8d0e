/** A failure in words: what is missing, whose turn it is, and where it can be looked up. */

import { useEffect, useState } from "react";
import { content } from "../api/client";
import { type Explanation, type Failure, refusingPolicies } from "../api/failure";
import { Link } from "./navigation";
import { useSession } from "./session";

interface RefusalProperties {
  readonly failure: Failure;
  readonly onRetry?: () => void;
}

export function Refusal({ failure, onRetry }: RefusalProperties) {
  const { signOut } = useSession();
  const { explanation } = failure;
  return (
    <div className={isExpected(explanation) ? "notice" : "notice notice-bad"} role="alert">
      <Reason explanation={explanation} />
      {refusingPolicies(explanation).map((id) => (
        <RefusingPolicy key={id} id={id} />
      ))}
      {explanation.requestId !== null && (
        <p className="small">
          Request ID <code className="anywhere">{explanation.requestId}</code>
        </p>
      )}
      {explanation.status === 401 && (
        <button type="button" className="button button-small" onClick={signOut}>
          Sign in again
        </button>
      )}
      {onRetry !== undefined && explanation.status !== 401 && !isExpected(explanation) && (
        <button type="button" className="button button-small" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** The policy by its name, for whoever may read it; the message has the ID in any case. */
function RefusingPolicy({ id }: { id: string }) {
  const { admin } = useSession();
  const [name, setName] = useState<string | null>(null);
  useEffect(() => {
    const abandon = new AbortController();
    const path = { policy_id: id };
    content(
      admin.GET("/manage/v1/organization/policies/{policy_id}", {
        params: { path },
        signal: abandon.signal,
      }),
    ).then(
      (policy) => setName(policy.name),
      () => setName(null),
    );
    return () => abandon.abort();
  }, [admin, id]);
  return (
    name !== null && (
      <p>
        The policy is called <Link to={{ page: "policy", id }}>{name}</Link>.
      </p>
    )
  );
}

/** Nothing is broken: the key, this version or this gateway was never meant to do it. */
function isExpected({ missingPermission, code }: Explanation): boolean {
  return missingPermission !== null || code === "unknown_url" || code === "no_judge";
}

function Reason({ explanation }: { explanation: Explanation }) {
  if (explanation.missingPermission !== null) {
    return (
      <p>
        Your Admin key lacks the permission <code>{explanation.missingPermission}</code>. Sign in
        with a key that holds it to see or do this.
      </p>
    );
  }
  if (explanation.code === "unknown_url") return <p>This gateway does not offer this yet.</p>;
  if (explanation.code === "no_judge") {
    return <p>This gateway has no judge to ask. Whoever runs it can configure one.</p>;
  }
  return <p>{explanation.message}</p>;
}
