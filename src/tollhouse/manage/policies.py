"""Policies: list, read, edit, versions, publish, resume, roll back."""

from dataclasses import dataclass, replace
from functools import partial

from tollhouse.api import parameters
from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.handlers import policies as given
from tollhouse.api.wire import resources as wire
from tollhouse.contract import policies as policies_wire
from tollhouse.contract.listing import ListQuery, NoQuery
from tollhouse.keys.types import Admin
from tollhouse.policies import service
from tollhouse.policies.sets import PublicationCheck


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
        async with self.database.mutation_by(call) as tx:
            policy = await service.publish(
                tx,
                parameters.policy_id(call),
                revision=call.body.revision,
                default_threshold_basis_points=self.publication.default_threshold_basis_points,
                objection=self.publication.check,
            )
        return OperationAnswer(body=wire.managed_policy(policy))

    async def resume(
        self,
        call: OperationCall[Admin, policies_wire.ResumePolicy, NoQuery],
    ) -> OperationAnswer:
        """POST /manage/v1/organization/policies/{policy_id}/resume"""
        async with self.database.mutation_by(call) as tx:
            policy = await service.resume(
                tx,
                parameters.policy_id(call),
                revision=call.body.revision,
                objection=self.publication.check,
            )
        return OperationAnswer(body=wire.managed_policy(policy))

    async def roll_back(
        self,
        call: OperationCall[Admin, policies_wire.RollBackPolicy, NoQuery],
    ) -> OperationAnswer:
        """POST /manage/v1/organization/policies/{policy_id}/rollback"""
        async with self.database.mutation_by(call) as tx:
            policy = await service.roll_back(
                tx,
                parameters.policy_id(call),
                revision=call.body.revision,
                version=call.body.version,
                objection=self.publication.check,
            )
        return OperationAnswer(body=wire.managed_policy(policy))
