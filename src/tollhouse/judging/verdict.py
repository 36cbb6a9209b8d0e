"""What decisions mean together. Monitoring never counts here, whatever it found."""

from collections.abc import Iterable, Sequence

from tollhouse.base.errors import GatewayError
from tollhouse.judging.errors import PolicyEvaluatorUnavailable, PolicyViolation
from tollhouse.judging.score import matches
from tollhouse.judging.types import Decision, FailureReason, JudgedDirection, Outcome, Score
from tollhouse.policies.types import AppliedPolicy, Mode


def decide(policy: AppliedPolicy, score: Score) -> Outcome:
    """One answer by the policy's own threshold; failed where it can not be told."""
    matched = matches(score, threshold_basis_points=policy.match_threshold_basis_points)
    if matched is None:
        return Outcome.FAILED
    return Outcome.MATCH if matched else Outcome.NO_MATCH


def passes(decision: Decision) -> bool:
    """An enforcing policy lets pass only what it was asked about and found no match in."""
    return decision.policy.mode is Mode.MONITORING or decision.outcome is Outcome.NO_MATCH


def refusal(decisions: Sequence[Decision], direction: JudgedDirection) -> GatewayError | None:
    """Why it may not pass. A match that is certain counts before an answer that is missing."""
    refusing = [decision for decision in decisions if not passes(decision)]
    matched = [each.policy.id for each in refusing if each.outcome is Outcome.MATCH]
    if matched:
        return PolicyViolation(matched, direction)
    return PolicyEvaluatorUnavailable() if refusing else None


def unanswered(policies: Iterable[AppliedPolicy], reason: FailureReason) -> tuple[Decision, ...]:
    """When nothing could be asked at all."""
    return tuple(
        Decision(policy=policy, outcome=Outcome.FAILED, reason=reason) for policy in policies
    )
