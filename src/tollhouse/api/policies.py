"""The given operations on policies."""

from uuid import UUID

from msgspec import UNSET

from tollhouse.api import parameters, wire
from tollhouse.api.call import Answer, Call
from tollhouse.api.idempotency import Creation, create_once
from tollhouse.api.mutations import mutation
from tollhouse.base.ids import PolicyId, time_ordered_uuid
from tollhouse.contract import policies as policies_wire
from tollhouse.contract.listing import NoQuery
from tollhouse.keys.types import Admin
from tollhouse.policies import service
from tollhouse.policies.types import (
    Direction,
    Mode,
    Policy,
    PolicyContent,
    PolicyEdit,
    Scope,
)
from tollhouse.projects import service as projects
from tollhouse.storage.database import Mutation


async def create(call: Call[Admin, policies_wire.CreatePolicy, NoQuery]) -> Answer:
    """POST /v1/organization/policies"""
    policy_id = PolicyId(time_ordered_uuid())
    content = _content(call.body)

    async def make(tx: Mutation) -> Policy:
        await service.require_room_for_policy(tx, call.house.quotas.policies)
        return await service.create(
            tx,
            policy_id=policy_id,
            name=call.body.name,
            description=call.body.description,
            content=content,
        )

    async def find(tx: Mutation, made_id: UUID) -> Policy:
        return await service.retrieve(tx, tx.organization_id, PolicyId(made_id))

    created = await create_once(call, Creation(resource_id=policy_id, create=make, find=find))
    return Answer(body=wire.policy(created.resource), headers=created.headers)


def _content(body: policies_wire.CreatePolicy) -> PolicyContent:
    return PolicyContent(
        rule=body.rule,
        direction=Direction(body.direction),
        mode=Mode(body.mode),
        scope=Scope(body.scope),
        project_ids=parameters.project_ids(body.project_ids),
        match_threshold_basis_points=body.match_threshold_basis_points,
    )


async def retrieve(call: Call[Admin, None, NoQuery]) -> Answer:
    """GET /v1/organization/policies/{policy_id}"""
    async with call.house.database.transaction() as tx:
        policy = await service.retrieve(tx, call.organization_id, parameters.policy_id(call))
    return Answer(body=wire.policy(policy))


async def edit(call: Call[Admin, policies_wire.EditPolicy, NoQuery]) -> Answer:
    """PATCH /v1/organization/policies/{policy_id}"""
    async with mutation(call) as tx:
        policy = await service.edit(
            tx,
            parameters.policy_id(call),
            revision=call.body.revision,
            changes=changes(call.body),
        )
    return Answer(body=wire.policy(policy))


def changes(body: policies_wire.EditPolicy) -> PolicyEdit:
    """What was left out stays left out."""
    return PolicyEdit(
        name=body.name,
        description=body.description,
        rule=body.rule,
        direction=UNSET if body.direction is UNSET else Direction(body.direction),
        mode=UNSET if body.mode is UNSET else Mode(body.mode),
        scope=UNSET if body.scope is UNSET else Scope(body.scope),
        project_ids=(
            UNSET if body.project_ids is UNSET else parameters.project_ids(body.project_ids)
        ),
        match_threshold_basis_points=body.match_threshold_basis_points,
    )


async def pause(call: Call[Admin, policies_wire.PausePolicy, NoQuery]) -> Answer:
    """POST /v1/organization/policies/{policy_id}/pause"""
    async with mutation(call) as tx:
        policy = await service.pause(tx, parameters.policy_id(call), revision=call.body.revision)
    return Answer(body=wire.policy(policy))


async def list_effective(call: Call[Admin, None, NoQuery]) -> Answer:
    """GET /v1/organization/projects/{project_id}/effective_policies"""
    project_id = parameters.project_id(call)
    async with call.house.database.transaction() as tx:
        await projects.retrieve(tx, call.organization_id, project_id)
        found = await service.effective(tx, call.organization_id, project_id)
    return Answer(
        body=policies_wire.EffectivePolicyList(data=[wire.effective_policy(one) for one in found])
    )
