/** A failure in words: what is missing, whose turn it is, and where it can be looked up. */

import { useEffect, useState } from "react";
import { type Explanation, errorPage, type Failure } from "../api/failure";
import { type RefusingPolicy, readRefusingPolicies } from "../api/refusing";
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
      <RefusingPolicies explanation={explanation} />
      {explanation.requestId !== null && (
        <p className="small">
          Request ID <code className="anywhere">{explanation.requestId}</code>
        </p>
      )}
      <ErrorPageLink code={explanation.code} />
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

function ErrorPageLink({ code }: { code: string }) {
  const page = errorPage(code);
  if (page === null) return null;
  return (
    <p className="small">
      <a href={page} target="_blank" rel="noopener">
        What to do about {code}
      </a>
    </p>
  );
}

/** The policies by their names, for an Admin key that may read them. */
function RefusingPolicies({ explanation }: { explanation: Explanation }) {
  const { admin } = useSession();
  const [policies, setPolicies] = useState<readonly RefusingPolicy[]>([]);
  useEffect(() => {
    const abandon = new AbortController();
    setPolicies([]);
    readRefusingPolicies(admin, explanation, abandon.signal).then((found) => {
      if (!abandon.signal.aborted) setPolicies(found);
    });
    return () => abandon.abort();
  }, [admin, explanation]);
  return policies.map(({ id, name }) => (
    <p key={id}>
      The policy is <Link to={{ page: "policy", id }}>{name}</Link>.
    </p>
  ));
}

/** Nothing is broken: the key, this version or this gateway was never meant to do it. */
function isExpected({ missingPermission, code }: Explanation): boolean {
  return missingPermission !== null || code === "unknown_url" || code === "no_judge";
}

function Reason({ explanation }: { explanation: Explanation }) {
  const { opened } = useSession();
  if (explanation.missingPermission !== null) {
    return (
      <p>
        {opened.is_person ? "You lack" : "Your Admin key lacks"} the permission{" "}
        <code>{explanation.missingPermission}</code>.{" "}
        {opened.is_person
          ? "The operator grants permissions to groups of the provider you signed in with."
          : "Sign in with a key that has it."}
      </p>
    );
  }
  if (explanation.code === "unknown_url") return <p>This gateway does not support this yet.</p>;
  if (explanation.code === "no_judge") {
    return <p>This gateway has no judge. Its operator can configure one.</p>;
  }
  return <p>{explanation.message}</p>;
}
