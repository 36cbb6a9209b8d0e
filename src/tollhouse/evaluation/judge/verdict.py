"""The verdict over a content from its decisions. Monitoring policies never refuse."""

from collections.abc import Iterable, Sequence

from tollhouse.base.errors import GatewayError
from tollhouse.base.policies import EvaluationOutcome, JudgedDirection, Mode
from tollhouse.evaluation.errors import (
    PolicyEvaluatorUnavailable,
    PolicyViolation,
    UnknownToDemonstrationJudge,
)
from tollhouse.evaluation.judge.score import matches
from tollhouse.evaluation.types import EvaluationDecision, FailureReason, Score
from tollhouse.policies.types import AppliedPolicy


def decide(policy: AppliedPolicy, score: Score) -> EvaluationOutcome:
    """Return the outcome of a score by the policy's threshold; FAILED if its bounds enclose it."""
    matched = matches(score, threshold_basis_points=policy.match_threshold_basis_points)
    if matched is None:
        return EvaluationOutcome.FAILED
    return EvaluationOutcome.MATCH if matched else EvaluationOutcome.NO_MATCH


def passes(decision: EvaluationDecision) -> bool:
    """Whether the decision lets the content pass. Enforcing policies pass only without a match."""
    return decision.policy.mode is Mode.MONITORING or decision.outcome is EvaluationOutcome.NO_MATCH


def refusal(
    decisions: Sequence[EvaluationDecision],
    direction: JudgedDirection,
    *,
    is_demonstration: bool = False,
) -> GatewayError | None:
    """Return the error of a content that may not pass, or None. A match precedes a failure.

    The demonstration judge says neither yes nor no to a rule that it does not know.
    """
    refusing = [decision for decision in decisions if not passes(decision)]
    matched = [each.policy.id for each in refusing if each.outcome is EvaluationOutcome.MATCH]
    if matched:
        return PolicyViolation(matched, direction)
    if is_demonstration and any(each.reason is FailureReason.UNSEEN for each in refusing):
        return UnknownToDemonstrationJudge()
    return PolicyEvaluatorUnavailable() if refusing else None


def unanswered(
    policies: Iterable[AppliedPolicy], reason: FailureReason
) -> tuple[EvaluationDecision, ...]:
    """Return a failed decision for each policy, for a content that was not judged."""
    return tuple(
        EvaluationDecision(policy=policy, outcome=EvaluationOutcome.FAILED, reason=reason)
        for policy in policies
    )
