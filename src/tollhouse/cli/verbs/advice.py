"""What to do next, said below an answer. Nothing is said with `--json`."""

from typing import Any, Final

from tollhouse.cli import output
from tollhouse.cli.verbs.gateway import Gateway, Headers, OperationRequest
from tollhouse.contract import operations, organization_operations, policy_operations
from tollhouse.contract.operation import AnyOperation
from tollhouse.contract.policies import SELECTING_HEADER

REVOKES_ALL: Final = (
    "This key can revoke every other Admin key of the organization, and itself. The operator can "
    "always create a new one with `tollhouse admin-key create`."
)
NOT_HARD: Final = "Nothing found that makes the rule hard to judge."
IN_BASIS_POINTS: Final = "\nScores, coverage and thresholds are in basis points."
SELECTED: Final = (
    "\n{requests} selected this policy by `policy_ids`. Such requests now go on without it."
)
EARLY_ABSENCE: Final = (
    "\nWarning: the rule seems to ask whether something is missing, and the policy ends answers "
    "early. What is missing at the beginning of an answer can still come. See `tollhouse policy "
    "lint`."
)
UNATTACHED: Final = (
    "\nThe scope is `unattached`: the policy applies only to requests that name it in "
    "`policy_ids`. To apply it to all requests, change its scope and publish it again:\n\n"
    "tollhouse policy edit {id} --scope organization\n"
    "tollhouse policy publish {id}"
)
PAUSED: Final = (
    "\nThe policy is paused. This version applies after you resume it:\n\n"
    "tollhouse policy resume {id}"
)
UNJUDGED: Final = (
    "\nWarning: the judge cannot answer the question of this policy: {why}. A policy that enforces "
    "refuses every request until the judge can."
)
NO_JUDGE: Final = "the gateway has no judge"
MATCHES: Final = (
    "\nWarning: the harmless text `Hello.` matches. See what else does:\n\n"
    'tollhouse policy test {id} --text "..."'
)
IN_FORCE: Final = (
    policy_operations.PUBLISH_POLICY,
    policy_operations.RESUME_POLICY,
    policy_operations.ROLL_BACK_POLICY,
)
LINTS: Final = (policy_operations.LINT_POLICY, policy_operations.LINT_UNSAVED_RULE)
TRIALS: Final = (policy_operations.TEST_POLICY, policy_operations.TEST_UNSAVED_RULE)

Json = dict[str, Any]


def sentences(gateway: Gateway, operation: AnyOperation, body: Json, headers: Headers) -> list[str]:
    """Return the sentences that fit the answer of an operation."""
    if operation in IN_FORCE:
        return _of_publication(gateway, body)
    if operation in LINTS:
        return [] if body["data"] else [NOT_HARD]
    if operation in TRIALS:
        return [IN_BASIS_POINTS, *_failures(gateway, body["data"])]
    if operation is operations.PAUSE_POLICY and int(headers.get(SELECTING_HEADER, "0")):
        count = int(headers[SELECTING_HEADER])
        requests = output.counted(count, "recent request", "recent requests")
        return [SELECTED.format(requests=requests)]
    is_admin_key = operation is organization_operations.CREATE_ADMIN_KEY
    return [REVOKES_ALL] if is_admin_key and "admin_api_keys:revoke" in body["permissions"] else []


def _of_publication(gateway: Gateway, policy: Json) -> list[str]:
    """Return warnings about probable mistakes in a policy that was published or resumed."""
    verdict, published = policy["preflight"], policy["published"]
    found: list[str] = []
    if verdict is None and policy["state"] == "enforcing":
        found.append(UNJUDGED.format(why=NO_JUDGE))
    elif verdict is not None and verdict["outcome"] == "failed":
        (why,) = _failures(gateway, [verdict])
        found.append(UNJUDGED.format(why=why.rstrip(".")))
    elif verdict is not None and verdict["outcome"] == "match":
        found.append(MATCHES.format(id=policy["id"]))
    if published["ends_answer_early"] and _asks_for_absence(published["rule"]):
        found.append(EARLY_ABSENCE)
    if published["scope"] == "unattached":
        found.append(UNATTACHED.format(id=policy["id"]))
    if policy["state"] == "paused":
        found.append(PAUSED.format(id=policy["id"]))
    return found


def _asks_for_absence(rule: str) -> bool:
    from tollhouse.policies.lint import LintRule, lint  # noqa: PLC0415 - only where it matters

    return LintRule.ABSENCE in {remark.weakness for remark in lint(rule)}


def _failures(gateway: Gateway, verdicts: list[Json]) -> list[str]:
    """Return a sentence for each reason why the judge gave no verdict."""
    reasons = [one["reason"] for one in verdicts if one["reason"] is not None]
    if not reasons:
        return []
    from tollhouse.evaluation.policy_preflight import why_failed  # noqa: PLC0415 - imports a lot
    from tollhouse.evaluation.types import FailureReason  # noqa: PLC0415 - imports a lot

    found, _ = gateway.call(organization_operations.RETRIEVE_ORGANIZATION, OperationRequest())
    judge: Json = found["judge"] or {}
    is_demonstration = judge.get("is_demonstration", False)
    return [
        f"{reason}: {why_failed(FailureReason(reason), is_demonstration=is_demonstration)}."
        for reason in dict.fromkeys(reasons)
    ]
