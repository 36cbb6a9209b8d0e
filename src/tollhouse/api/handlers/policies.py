"""The operations on policies under `/v1`."""

from dataclasses import dataclass
from uuid import UUID

from msgspec import UNSET

from tollhouse.api import parameters, request_search
from tollhouse.api.admin_database import AdminDatabase, Creation
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.wire import resources as wire
from tollhouse.base.ids import PolicyId, time_ordered_uuid
from tollhouse.base.policies import Direction, Mode
from tollhouse.contract import policies as policies_wire
from tollhouse.contract.listing import NoQuery
from tollhouse.keys.types import Admin
from tollhouse.policies import service
from tollhouse.policies.types import Policy, PolicyContent, PolicyEdit, PolicyScope
from tollhouse.projects import service as projects
from tollhouse.storage.database import Mutation


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyHandlers:
    """Handlers of the operations on policies under `/v1`."""

    database: AdminDatabase
    policies_max: int

    async def create(
        self,
        call: OperationCall[Admin, policies_wire.CreatePolicy, NoQuery],
    ) -> OperationAnswer:
        """POST /v1/organization/policies"""
        policy_id = PolicyId(time_ordered_uuid())
        content = _content(call.body)

        async def make(tx: Mutation) -> Policy:
            await service.require_room_for_policy(tx, self.policies_max)
            return await service.create(
                tx,
                policy_id=policy_id,
                name=call.body.name,
                description=call.body.description,
                content=content,
            )

        async def find(tx: Mutation, made_id: UUID) -> Policy:
            return await service.retrieve(tx, tx.organization_id, PolicyId(made_id))

        created = await self.database.create_once(
            call, Creation(resource_id=policy_id, create=make, find=find)
        )
        return OperationAnswer(body=wire.policy(created.resource), headers=created.headers)

    async def retrieve(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """GET /v1/organization/policies/{policy_id}"""
        async with self.database.transaction() as tx:
            policy = await service.retrieve(tx, call.organization_id, parameters.policy_id(call))
        return OperationAnswer(body=wire.policy(policy))

    async def edit(
        self, call: OperationCall[Admin, policies_wire.EditPolicy, NoQuery]
    ) -> OperationAnswer:
        """PATCH /v1/organization/policies/{policy_id}"""
        async with self.database.mutation_by(call) as tx:
            policy = await service.edit(
                tx,
                parameters.policy_id(call),
                revision=call.body.revision,
                changes=changes(call.body),
            )
        return OperationAnswer(body=wire.policy(policy))

    async def pause(
        self, call: OperationCall[Admin, policies_wire.PausePolicy, NoQuery]
    ) -> OperationAnswer:
        """POST /v1/organization/policies/{policy_id}/pause"""
        async with self.database.mutation_by(call) as tx:
            policy = await service.pause(
                tx, parameters.policy_id(call), revision=call.body.revision
            )
        async with self.database.transaction() as tx:
            selecting = await request_search.selecting(tx, policy, now=call.now)
        return OperationAnswer(
            body=wire.policy(policy),
            headers=((policies_wire.SELECTING_HEADER, str(selecting)),),
        )

    async def list_effective(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """GET /v1/organization/projects/{project_id}/effective_policies"""
        project_id = parameters.project_id(call)
        async with self.database.transaction() as tx:
            await projects.retrieve(tx, call.organization_id, project_id)
            found = await service.effective(tx, call.organization_id, project_id)
        return OperationAnswer(
            body=policies_wire.EffectivePolicyList(
                data=[wire.effective_policy(one) for one in found]
            )
        )


def _content(body: policies_wire.CreatePolicy) -> PolicyContent:
    return PolicyContent(
        rule=body.rule,
        direction=Direction(body.direction),
        mode=Mode(body.mode),
        scope=PolicyScope(body.scope),
        project_ids=parameters.project_ids(body.project_ids),
        match_threshold_basis_points=body.match_threshold_basis_points,
    )


def changes(body: policies_wire.EditPolicy) -> PolicyEdit:
    """Convert the changes of a policy. Unset fields stay unset."""
    return PolicyEdit(
        name=body.name,
        description=body.description,
        rule=body.rule,
        direction=UNSET if body.direction is UNSET else Direction(body.direction),
        mode=UNSET if body.mode is UNSET else Mode(body.mode),
        scope=UNSET if body.scope is UNSET else PolicyScope(body.scope),
        project_ids=(
            UNSET if body.project_ids is UNSET else parameters.project_ids(body.project_ids)
        ),
        match_threshold_basis_points=body.match_threshold_basis_points,
    )
