"""Drafts of policies, saved or not: lint and test. Nothing is changed, recorded or charged."""

from dataclasses import dataclass
from typing import TypeVar

from msgspec import UNSET

from tollhouse.api import parameters
from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.wire import policy_trials as policy_trial_wire
from tollhouse.base.policies import Direction
from tollhouse.contract.listing import NoQuery
from tollhouse.contract.policy_trials import LintPolicy, LintUnsavedRule, TryPolicy, TryUnsavedRule
from tollhouse.evaluation import PolicyTrials
from tollhouse.keys.types import Admin
from tollhouse.policies import lint as rule_lint
from tollhouse.policies import service
from tollhouse.policies.applying import Side, on_trial, rule_on_trial
from tollhouse.policies.types import AppliedPolicy

_Body = TypeVar("_Body", TryPolicy, TryUnsavedRule)


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
        return OperationAnswer(body=policy_trial_wire.remarks(rule_lint.lint(rule)))

    async def test(self, call: OperationCall[Admin, TryPolicy, NoQuery]) -> OperationAnswer:
        """POST /manage/v1/organization/policies/{policy_id}/test"""
        async with self.database.transaction() as tx:
            policy = await service.retrieve(tx, call.organization_id, parameters.policy_id(call))
        sides = on_trial(
            policy,
            default_threshold_basis_points=self.default_threshold_basis_points,
            rule=None if call.body.rule is UNSET else call.body.rule,
        )
        return await self._judged(call, sides, call.body.text)

    async def lint_unsaved_rule(
        self, call: OperationCall[Admin, LintUnsavedRule, NoQuery]
    ) -> OperationAnswer:
        """POST /manage/v1/organization/policy_rules/lint"""
        return OperationAnswer(body=policy_trial_wire.remarks(rule_lint.lint(call.body.rule)))

    async def test_unsaved_rule(
        self, call: OperationCall[Admin, TryUnsavedRule, NoQuery]
    ) -> OperationAnswer:
        """POST /manage/v1/organization/policy_rules/test"""
        threshold = call.body.match_threshold_basis_points
        sides = rule_on_trial(
            call.body.rule,
            direction=Direction(call.body.direction),
            threshold_basis_points=(
                self.default_threshold_basis_points if threshold is None else threshold
            ),
        )
        return await self._judged(call, sides, call.body.text)

    async def _judged(
        self,
        call: OperationCall[Admin, _Body, NoQuery],
        sides: dict[Side, AppliedPolicy],
        text: str,
    ) -> OperationAnswer:
        if call.permit is not None:
            # The judge may take long, and `PolicyTrials` bounds how many trials run at once.
            call.permit.release()
        decisions = await self.trials.decide(call.organization_id, list(sides.values()), text)
        return OperationAnswer(body=policy_trial_wire.verdicts(sides, decisions))
