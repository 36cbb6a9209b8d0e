"""What a policy decided: one by one, and in sums by the day."""

from msgspec import UnsetType

from tollhouse.api import decision_wire, parameters, wire
from tollhouse.api.call import Answer, Call
from tollhouse.contract.decisions import PolicyDecisionList, PolicyRollupsQuery
from tollhouse.contract.listing import ListQuery
from tollhouse.decisions import service
from tollhouse.keys.types import Admin
from tollhouse.policies import service as policies


async def page(call: Call[Admin, None, ListQuery]) -> Answer:
    """GET /manage/v1/organization/policies/{policy_id}/decisions"""
    policy_id, after = parameters.policy_id(call), decision_wire.place(call.query.after)
    async with call.house.database.transaction() as tx:
        await policies.retrieve(tx, call.organization_id, policy_id)
        found = await service.page(
            tx, call.organization_id, policy_id, after=after, limit=call.query.limit + 1
        )
    return Answer(
        body=wire.page(PolicyDecisionList, found, call.query.limit, decision_wire.decision)
    )


async def report(call: Call[Admin, None, PolicyRollupsQuery]) -> Answer:
    """GET /manage/v1/organization/policies/{policy_id}/rollups"""
    policy_id, query = parameters.policy_id(call), call.query
    end = None if isinstance(query.end_time, UnsetType) else query.end_time
    days = service.days(query.start_time, end, now=call.now)
    async with call.house.report_database.transaction() as tx:
        await policies.retrieve(tx, call.organization_id, policy_id)
        found = await service.tallies(tx, call.organization_id, policy_id, days)
    return Answer(body=decision_wire.rollups(found))
