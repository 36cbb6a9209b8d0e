"""Drafts of policies: lint and test. Nothing is changed, recorded or charged."""

from dataclasses import dataclass

from msgspec import UNSET

from tollhouse.api import parameters
from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.wire import policy_trials as policy_trial_wire
from tollhouse.contract.listing import NoQuery
from tollhouse.contract.policy_trials import LintPolicy, TryPolicy
from tollhouse.evaluation import PolicyTrials
from tollhouse.keys.types import Admin
from tollhouse.policies import service
from tollhouse.policies.applying import on_trial
from tollhouse.policies.lint import lint as lint_rule


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyTrialHandlers:
    """Handlers that lint and test drafts of policies."""

    database: AdminDatabase
    trials: PolicyTrials
    default_threshold_basis_points: int

    async def lint(self, call: OperationCall[Admin, LintPolicy, NoQuery]) -> OperationAnswer:
        """POST /manage/v1/organization/policies/{policy_id}/lint"""
        async with self.database.transaction() as tx:
            policy = await service.retrieve(tx, call.organization_id, parameters.policy_id(call))
        rule = policy.draft.rule if call.body.rule is UNSET else call.body.rule
        return OperationAnswer(body=policy_trial_wire.remarks(lint_rule(rule)))

    async def test(self, call: OperationCall[Admin, TryPolicy, NoQuery]) -> OperationAnswer:
        """POST /manage/v1/organization/policies/{policy_id}/test"""
        async with self.database.transaction() as tx:
            policy = await service.retrieve(tx, call.organization_id, parameters.policy_id(call))
        sides = on_trial(
            policy,
            default_threshold_basis_points=self.default_threshold_basis_points,
            rule=None if call.body.rule is UNSET else call.body.rule,
        )
        if call.permit is not None:
            # The judge may take long, and `PolicyTrials` bounds how many trials run at once.
            call.permit.release()
        decisions = await self.trials.decide(
            call.organization_id, list(sides.values()), call.body.text
        )
        return OperationAnswer(body=policy_trial_wire.verdicts(sides, decisions))
