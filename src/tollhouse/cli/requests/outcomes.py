"""How a request ended, in words."""

from collections.abc import Sequence
from typing import Final

from tollhouse.activity.types import RequestRecord
from tollhouse.base.ids import policy_id_text
from tollhouse.base.policies import EvaluationOutcome
from tollhouse.decisions.types import BlockingDecision

CALLER_DISCONNECTED: Final = 499
BASIS_POINTS_PER_PERCENT: Final = 100


def outcome(record: RequestRecord, blocked_by: Sequence[BlockingDecision]) -> str:
    """Return the status; for a failure also its code, its source and the blocking policies."""
    words = [str(record.status)]
    if record.status == CALLER_DISCONNECTED:
        words.append("the caller disconnected")
    if record.error_code is not None:
        words.append(record.error_code)
    if record.error_param is not None:
        words.append(f"in '{record.error_param}'")
    if blocked_by:
        words.append("by policy " + ", ".join(f"'{each.name}'" for each in blocked_by))
    if record.failed_by is not None:
        words.append(f"(failed by the {record.failed_by})")
    return " ".join(words)


def refusal(decision: BlockingDecision) -> str:
    """Return which policy refused a request or its response, and why."""
    policy = f"'{decision.name}' ({policy_id_text(decision.policy_id)}, version {decision.version})"
    if decision.outcome is not EvaluationOutcome.MATCH or decision.score is None:
        reason = "" if decision.reason is None else f": {decision.reason}"
        return f"{policy} could not evaluate the {decision.direction}{reason}"
    score, threshold = percent(decision.score), percent(decision.threshold)
    return f"{policy} matched the {decision.direction}: score {score}, threshold {threshold}"


def percent(basis_points: int) -> str:
    """Return basis points as a percentage: `80.5 %`."""
    return f"{basis_points / BASIS_POINTS_PER_PERCENT:g} %"
