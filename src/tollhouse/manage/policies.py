"""Policies: list, history, and what leads from a draft to what applies."""

from dataclasses import replace
from functools import partial

from tollhouse.api import parameters, wire
from tollhouse.api import policies as given
from tollhouse.api.call import Answer, Call
from tollhouse.api.mutations import mutation
from tollhouse.contract import policies as policies_wire
from tollhouse.contract.listing import ListQuery, NoQuery
from tollhouse.keys.types import Admin
from tollhouse.policies import service


async def page(call: Call[Admin, None, ListQuery]) -> Answer:
    """GET /manage/v1/organization/policies"""
    async with call.house.database.transaction() as tx:
        found = await service.page(
            tx,
            call.organization_id,
            after=parameters.policy_cursor(call.query.after),
            limit=call.query.limit + 1,
        )
    return Answer(
        body=wire.page(policies_wire.PolicyList, found, call.query.limit, wire.managed_policy)
    )


async def retrieve(call: Call[Admin, None, NoQuery]) -> Answer:
    """GET /manage/v1/organization/policies/{policy_id}"""
    async with call.house.database.transaction() as tx:
        policy = await service.retrieve(tx, call.organization_id, parameters.policy_id(call))
    return Answer(body=wire.managed_policy(policy))


async def edit(call: Call[Admin, policies_wire.EditManagedPolicy, NoQuery]) -> Answer:
    """PATCH /manage/v1/organization/policies/{policy_id}"""
    changes = replace(given.changes(call.body), ends_answer_early=call.body.ends_answer_early)
    async with mutation(call) as tx:
        policy = await service.edit(
            tx, parameters.policy_id(call), revision=call.body.revision, changes=changes
        )
    return Answer(body=wire.managed_policy(policy))


async def page_of_versions(call: Call[Admin, None, ListQuery]) -> Answer:
    """GET /manage/v1/organization/policies/{policy_id}/versions"""
    policy_id = parameters.policy_id(call)
    async with call.house.database.transaction() as tx:
        policy = await service.retrieve(tx, call.organization_id, policy_id)
        found = await service.page_of_versions(
            tx,
            call.organization_id,
            policy_id,
            after=parameters.version_cursor(call.query.after, policy_id),
            limit=call.query.limit + 1,
        )
    show = partial(wire.managed_policy_version, current_version=policy.current_version)
    return Answer(body=wire.page(policies_wire.PolicyVersionList, found, call.query.limit, show))


async def retrieve_version(call: Call[Admin, None, NoQuery]) -> Answer:
    """GET /manage/v1/organization/policies/{policy_id}/versions/{version}"""
    policy_id = parameters.policy_id(call)
    async with call.house.database.transaction() as tx:
        policy = await service.retrieve(tx, call.organization_id, policy_id)
        version = await service.retrieve_version(
            tx, call.organization_id, policy_id, parameters.version(call)
        )
    return Answer(body=wire.managed_policy_version(version, current_version=policy.current_version))


async def publish(call: Call[Admin, policies_wire.PublishPolicy, NoQuery]) -> Answer:
    """POST /manage/v1/organization/policies/{policy_id}/publish"""
    async with mutation(call) as tx:
        policy = await service.publish(
            tx,
            parameters.policy_id(call),
            revision=call.body.revision,
            default_threshold_basis_points=call.house.default_threshold_basis_points,
            objection=call.house.objection,
        )
    return Answer(body=wire.managed_policy(policy))


async def resume(call: Call[Admin, policies_wire.ResumePolicy, NoQuery]) -> Answer:
    """POST /manage/v1/organization/policies/{policy_id}/resume"""
    async with mutation(call) as tx:
        policy = await service.resume(
            tx,
            parameters.policy_id(call),
            revision=call.body.revision,
            objection=call.house.objection,
        )
    return Answer(body=wire.managed_policy(policy))


async def roll_back(call: Call[Admin, policies_wire.RollBackPolicy, NoQuery]) -> Answer:
    """POST /manage/v1/organization/policies/{policy_id}/rollback"""
    async with mutation(call) as tx:
        policy = await service.roll_back(
            tx,
            parameters.policy_id(call),
            revision=call.body.revision,
            version=call.body.version,
            objection=call.house.objection,
        )
    return Answer(body=wire.managed_policy(policy))
