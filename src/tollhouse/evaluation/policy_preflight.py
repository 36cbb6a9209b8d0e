"""Ask the judge the question of a policy before the policy applies."""

from dataclasses import replace
from typing import Final

from tollhouse.base.policies import EvaluationOutcome, Mode
from tollhouse.evaluation.errors import FAILURES, NO_JUDGE, UNKNOWN_RULE, NoJudge, PolicyNotJudged
from tollhouse.evaluation.trials import PolicyTrials
from tollhouse.evaluation.types import EvaluationDecision, FailureReason
from tollhouse.policies.applying import in_force
from tollhouse.policies.types import Policy, PolicyState

PREFLIGHT_TEXT: Final = "Hello."
"""A text that few policies are about."""


async def preflight(
    trials: PolicyTrials, policy: Policy, *, refuses_until_judged: bool
) -> EvaluationDecision | None:
    """Return the judge's decision of a harmless text, or None without a judge.

    `policy` is as its publication would leave it. Raises `PolicyNotJudged` if it would refuse
    every request, unless that is wanted. A rule that is too long is left to the publication.
    """
    assert policy.published is not None, "only what is published can be in force"
    asked = replace(in_force(policy.published), mode=Mode.MONITORING)
    may_raise = policy.state is PolicyState.ENFORCING and not refuses_until_judged
    try:
        (decision,) = await trials.decide(policy.organization_id, [asked], PREFLIGHT_TEXT)
    except NoJudge:
        if may_raise:
            raise PolicyNotJudged(why=NO_JUDGE) from None
        return None
    is_failed = decision.outcome is EvaluationOutcome.FAILED
    if is_failed and may_raise and decision.reason is not FailureReason.OVER_BUDGET:
        raise PolicyNotJudged(
            why=why_failed(decision.reason, is_demonstration=trials.is_demonstration)
        )
    return decision


def why_failed(reason: FailureReason | None, *, is_demonstration: bool) -> str:
    """Return the reason in words. The demonstration judge says nothing to an unknown rule."""
    if is_demonstration and reason is FailureReason.UNSEEN:
        return UNKNOWN_RULE
    return FAILURES[reason or FailureReason.UNREACHABLE]
