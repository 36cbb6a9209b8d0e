"""Conversion of policy trials into wire types."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec.structs import asdict

from tollhouse.api.wire.resources import managed_policy
from tollhouse.base.policies import EvaluationOutcome
from tollhouse.contract import policy_trials as wire
from tollhouse.evaluation import EvaluationDecision
from tollhouse.policies.applying import Side
from tollhouse.policies.lint import LintWarning
from tollhouse.policies.types import Policy


def remarks(found: Iterable[LintWarning]) -> wire.PolicyRemarkList:
    """Convert warnings, in their order."""
    return wire.PolicyRemarkList(
        data=[wire.PolicyRemark(weakness=each.weakness.value, advice=each.advice) for each in found]
    )


def verdicts(
    sides: Iterable[Side], decisions: Sequence[EvaluationDecision]
) -> wire.PolicyVerdictList:
    """Convert the decisions, one for each side."""
    pairs = zip(sides, decisions, strict=True)
    return wire.PolicyVerdictList(data=[_verdict(side, decision) for side, decision in pairs])


def policy_in_force(policy: Policy, decision: EvaluationDecision | None) -> wire.PolicyInForce:
    """Convert a policy that was published or resumed, and the decision before that."""
    verdict = None if decision is None else _verdict("published", decision)
    fields: dict[str, Any] = asdict(managed_policy(policy)) | {"preflight": verdict}
    return wire.PolicyInForce(**fields)


def _verdict(side: Side, decision: EvaluationDecision) -> wire.PolicyVerdict:
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


def _outcome(outcome: EvaluationOutcome) -> Literal["match", "no_match", "failed"]:
    assert outcome is not EvaluationOutcome.SKIPPED, "what monitors is asked to the end"
    return outcome.value
