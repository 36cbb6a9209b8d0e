"""Policies: list, read, edit, versions, publish, resume, roll back."""

from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from tollhouse.api import parameters
from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.handlers import policies as given
from tollhouse.api.wire import resources as wire
from tollhouse.api.wire.policy_trials import policy_in_force
from tollhouse.base.ids import policy_id_text
from tollhouse.contract import policies as policies_wire
from tollhouse.contract.listing import ListQuery, NoQuery
from tollhouse.evaluation import PolicyTrials, preflight
from tollhouse.keys.types import Admin
from tollhouse.policies import service
from tollhouse.policies.sets import PublicationCheck
from tollhouse.policies.types import Publication, Publish, Resume, RollBack

_Body = TypeVar(
    "_Body",
    policies_wire.PublishPolicy,
    policies_wire.ResumePolicy,
    policies_wire.RollBackPolicy,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicationRules:
    """The check before a publication, and the threshold of a policy without one."""

    default_threshold_basis_points: int
    check: PublicationCheck


@dataclass(frozen=True, kw_only=True, slots=True)
class ManagedPolicyHandlers:
    """Handlers of the operations on policies under `/manage/v1`."""

    database: AdminDatabase
    publication: PublicationRules
    trials: PolicyTrials

    async def page(self, call: OperationCall[Admin, None, ListQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/policies"""
        async with self.database.transaction() as tx:
            found = await service.page(
                tx,
                call.organization_id,
                after=parameters.policy_cursor(call.query.after),
                limit=call.query.limit + 1,
            )
        return OperationAnswer(
            body=wire.page(policies_wire.PolicyList, found, call.query.limit, wire.managed_policy)
        )

    async def retrieve(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/policies/{policy_id}"""
        async with self.database.transaction() as tx:
            policy = await service.retrieve(tx, call.organization_id, parameters.policy_id(call))
        return OperationAnswer(body=wire.managed_policy(policy))

    async def edit(
        self,
        call: OperationCall[Admin, policies_wire.EditManagedPolicy, NoQuery],
    ) -> OperationAnswer:
        """PATCH /manage/v1/organization/policies/{policy_id}"""
        changes = replace(given.changes(call.body), ends_answer_early=call.body.ends_answer_early)
        async with self.database.mutation_by(call) as tx:
            policy = await service.edit(
                tx, parameters.policy_id(call), revision=call.body.revision, changes=changes
            )
        return OperationAnswer(body=wire.managed_policy(policy))

    async def delete(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """DELETE /manage/v1/organization/policies/{policy_id}"""
        policy_id = parameters.policy_id(call)
        async with self.database.mutation_by(call) as tx:
            await service.delete(tx, policy_id)
        deleted = policies_wire.PolicyDeleted(id=policy_id_text(policy_id), deleted=True)
        return OperationAnswer(body=deleted)

    async def page_of_versions(
        self, call: OperationCall[Admin, None, ListQuery]
    ) -> OperationAnswer:
        """GET /manage/v1/organization/policies/{policy_id}/versions"""
        policy_id = parameters.policy_id(call)
        async with self.database.transaction() as tx:
            policy = await service.retrieve(tx, call.organization_id, policy_id)
            found = await service.page_of_versions(
                tx,
                call.organization_id,
                policy_id,
                after=parameters.version_cursor(call.query.after, policy_id),
                limit=call.query.limit + 1,
            )
        show = partial(wire.managed_policy_version, current_version=policy.current_version)
        return OperationAnswer(
            body=wire.page(policies_wire.PolicyVersionList, found, call.query.limit, show)
        )

    async def retrieve_version(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/policies/{policy_id}/versions/{version}"""
        policy_id = parameters.policy_id(call)
        async with self.database.transaction() as tx:
            policy = await service.retrieve(tx, call.organization_id, policy_id)
            version = await service.retrieve_version(
                tx, call.organization_id, policy_id, parameters.version(call)
            )
        return OperationAnswer(
            body=wire.managed_policy_version(version, current_version=policy.current_version)
        )

    async def publish(
        self,
        call: OperationCall[Admin, policies_wire.PublishPolicy, NoQuery],
    ) -> OperationAnswer:
        """POST /manage/v1/organization/policies/{policy_id}/publish"""
        default = self.publication.default_threshold_basis_points
        return await self._put_in_force(call, Publish(default_threshold_basis_points=default))

    async def resume(
        self,
        call: OperationCall[Admin, policies_wire.ResumePolicy, NoQuery],
    ) -> OperationAnswer:
        """POST /manage/v1/organization/policies/{policy_id}/resume"""
        return await self._put_in_force(call, Resume())

    async def roll_back(
        self,
        call: OperationCall[Admin, policies_wire.RollBackPolicy, NoQuery],
    ) -> OperationAnswer:
        """POST /manage/v1/organization/policies/{policy_id}/rollback"""
        return await self._put_in_force(call, RollBack(version=call.body.version))

    async def _put_in_force(
        self,
        call: OperationCall[Admin, _Body, NoQuery],
        publication: Publication,
    ) -> OperationAnswer:
        """Ask the judge, then publish. A policy that was changed meanwhile is a stale revision."""
        policy_id, revision = parameters.policy_id(call), call.body.revision
        async with self.database.transaction() as tx:
            foreseen = await service.foresee(
                tx, call.organization_id, policy_id, publication, revision=revision, now=call.now
            )
        decision = await preflight(
            self.trials, foreseen, refuses_until_judged=call.body.refuses_until_judged
        )
        async with self.database.mutation_by(call) as tx:
            policy = await service.put_in_force(
                tx, policy_id, publication, revision=revision, objection=self.publication.check
            )
        return OperationAnswer(body=policy_in_force(policy, decision))
