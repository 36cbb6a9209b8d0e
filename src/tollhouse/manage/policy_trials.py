"""Drafts on trial, before anybody feels them. Nothing is changed, recorded or charged."""

from msgspec import UNSET

from tollhouse.api import parameters, policy_trial_wire
from tollhouse.api.call import Answer, Call
from tollhouse.contract.listing import NoQuery
from tollhouse.contract.policy_trials import LintPolicy, TryPolicy
from tollhouse.keys.types import Admin
from tollhouse.policies import service
from tollhouse.policies.applying import on_trial
from tollhouse.policies.lint import lint as lint_rule


async def lint(call: Call[Admin, LintPolicy, NoQuery]) -> Answer:
    """POST /manage/v1/organization/policies/{policy_id}/lint"""
    async with call.house.database.transaction() as tx:
        policy = await service.retrieve(tx, call.organization_id, parameters.policy_id(call))
    rule = policy.draft.rule if call.body.rule is UNSET else call.body.rule
    return Answer(body=policy_trial_wire.remarks(lint_rule(rule)))


async def test(call: Call[Admin, TryPolicy, NoQuery]) -> Answer:
    """POST /manage/v1/organization/policies/{policy_id}/test"""
    async with call.house.database.transaction() as tx:
        policy = await service.retrieve(tx, call.organization_id, parameters.policy_id(call))
    sides = on_trial(
        policy,
        default_threshold_basis_points=call.house.default_threshold_basis_points,
        rule=None if call.body.rule is UNSET else call.body.rule,
    )
    if call.permit is not None:
        # The judge may take long, and `Trials` bounds how many texts it is shown at once.
        call.permit.release()
    decisions = await call.house.trials.decide(
        call.organization_id, list(sides.values()), call.body.text
    )
    return Answer(body=policy_trial_wire.verdicts(sides, decisions))
