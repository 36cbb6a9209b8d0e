"""What the process counts of examinations."""

from typing import Final

from tollhouse.decisions.types import Examination, PolicyDecision
from tollhouse.observability import metrics

NOT_EVALUABLE_REASONS: Final = frozenset({"not_evaluable", "over_budget"})
"""Reasons that lie in the content. No other judge would have had an answer."""
_NOT_EVALUABLE: Final = "not_evaluable"
_MS = 1000.0


def count(examination: Examination) -> None:
    """Every policy of it, and how long all of them took together."""
    for decision in examination.decisions:
        metrics.policy_decided(examination.direction, examination.mode, _outcome(decision))
    seconds = examination.judging_ms / _MS
    metrics.judged(examination.direction, examination.mode, seconds=seconds)


def _outcome(decision: PolicyDecision) -> str:
    """Return the outcome with content that cannot be evaluated apart from a judge that failed."""
    is_content = decision.reason in NOT_EVALUABLE_REASONS
    return _NOT_EVALUABLE if is_content else decision.outcome
