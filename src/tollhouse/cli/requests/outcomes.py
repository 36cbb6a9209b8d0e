"""How a request ended, in words."""

from collections.abc import Sequence
from typing import Final

from tollhouse.activity import rules
from tollhouse.activity.types import RequestOutcome, RequestRecord
from tollhouse.base.ids import policy_id_text
from tollhouse.base.policies import EvaluationOutcome
from tollhouse.decisions.types import BlockingDecision

CALLER_DISCONNECTED: Final = 499
BASIS_POINTS_PER_PERCENT: Final = 100


def outcome(record: RequestRecord, blocked_by: Sequence[BlockingDecision]) -> str:
    """Return the status, and how the request ended if it did not succeed: code, policies, side."""
    words = [str(record.status)]
    if record.status == CALLER_DISCONNECTED:
        words.append("the caller disconnected")
    if record.error_code is not None:
        words.append(record.error_code)
    if record.error_param is not None:
        words.append(f"in '{record.error_param}'")
    if blocked_by:
        words.append("by policy " + ", ".join(f"'{each.name}'" for each in blocked_by))
    words += _ending(record)
    return " ".join(words)


def _ending(record: RequestRecord) -> list[str]:
    match rules.outcome(record.status, record.error_code):
        case RequestOutcome.SUCCEEDED:
            return []
        case RequestOutcome.FAILED if record.failed_by is not None:
            return [f"(failed by the {record.failed_by})"]
        case ended:
            return [f"({ended.value.replace('_', ' ')})"]


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
