"""Policies on trial turned into wire types."""

from collections.abc import Iterable, Sequence
from typing import Literal

from tollhouse.contract import policy_trials as wire
from tollhouse.judging.types import Decision, Outcome
from tollhouse.policies.applying import Side
from tollhouse.policies.lint import Remark


def remarks(found: Iterable[Remark]) -> wire.PolicyRemarkList:
    """In their order."""
    return wire.PolicyRemarkList(
        data=[wire.PolicyRemark(weakness=each.weakness.value, advice=each.advice) for each in found]
    )


def verdicts(sides: Iterable[Side], decisions: Sequence[Decision]) -> wire.PolicyVerdictList:
    """One for each side."""
    pairs = zip(sides, decisions, strict=True)
    return wire.PolicyVerdictList(data=[_verdict(side, decision) for side, decision in pairs])


def _verdict(side: Side, decision: Decision) -> wire.PolicyVerdict:
    score = decision.score
    return wire.PolicyVerdict(
        of=side,
        outcome=_outcome(decision.outcome),
        score_basis_points=score and score.basis_points,
        lowest_basis_points=score and score.lowest_basis_points,
        highest_basis_points=score and score.highest_basis_points,
        coverage_basis_points=score and score.coverage_basis_points,
        threshold_basis_points=decision.policy.match_threshold_basis_points,
        reason=decision.reason,
    )


def _outcome(outcome: Outcome) -> Literal["match", "no_match", "failed"]:
    assert outcome is not Outcome.SKIPPED, "what monitors is asked to the end"
    return outcome.value
