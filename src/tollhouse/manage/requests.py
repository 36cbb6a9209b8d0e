"""What became of requests: recent ones, one by its ID, and sums by the hour."""

from msgspec import UnsetType

from tollhouse.activity import service
from tollhouse.api import parameters, request_wire
from tollhouse.api.call import Answer, Call
from tollhouse.base.ids import RequestId
from tollhouse.contract.listing import NoQuery
from tollhouse.contract.requests import RequestRollupsQuery, RequestsQuery
from tollhouse.decisions import service as decisions
from tollhouse.keys.types import Admin


async def page(call: Call[Admin, None, RequestsQuery]) -> Answer:
    """GET /manage/v1/organization/requests"""
    query = call.query
    only, after = request_wire.filter_(query), parameters.cursor(query.after)
    async with call.house.database.transaction() as tx:
        found = await service.page(
            tx,
            call.organization_id,
            only,
            after=None if after is None else RequestId(after),
            limit=query.limit,
        )
        policed = request_wire.policed(found.records)
        blocked = await decisions.blocking(tx, call.organization_id, policed)
    return Answer(body=request_wire.record_list(found, blocked))


async def retrieve(call: Call[Admin, None, NoQuery]) -> Answer:
    """GET /manage/v1/organization/requests/{request_id}"""
    request_id = request_wire.request_id(call)
    async with call.house.database.transaction() as tx:
        found = await service.retrieve(tx, call.organization_id, request_id)
        policed = request_wire.policed([found])
        blocked = await decisions.blocking(tx, call.organization_id, policed)
    return Answer(body=request_wire.record(found, blocked.get(request_id, ())))


async def report(call: Call[Admin, None, RequestRollupsQuery]) -> Answer:
    """GET /manage/v1/organization/request_rollups"""
    query, group_by = call.query, request_wire.grouping(call.query)
    end = None if isinstance(query.end_time, UnsetType) else query.end_time
    hours = service.hours(query.start_time, end, now=call.now)
    async with call.house.report_database.transaction() as tx:
        found = await service.tallies(tx, call.organization_id, hours, group_by)
    return Answer(body=request_wire.rollups(hours, group_by, found))
