"""Records of requests: recent ones, one by its ID, and hourly sums."""

from dataclasses import dataclass

from msgspec import UnsetType

from tollhouse.activity import service
from tollhouse.api import parameters
from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.wire import requests as request_wire
from tollhouse.base.ids import RequestId
from tollhouse.contract.listing import NoQuery
from tollhouse.contract.requests import RequestRollupsQuery, RequestsQuery
from tollhouse.decisions import service as decisions
from tollhouse.keys.types import Admin
from tollhouse.storage.database import Database


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestHandlers:
    """Handlers of the records of requests."""

    database: AdminDatabase
    report_database: Database

    async def page(self, call: OperationCall[Admin, None, RequestsQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/requests"""
        query = call.query
        only, after = request_wire.filter_(query), parameters.cursor(query.after)
        async with self.database.transaction() as tx:
            found = await service.page(
                tx,
                call.organization_id,
                only,
                after=None if after is None else RequestId(after),
                limit=query.limit,
            )
            policed = request_wire.policed(found.records)
            blocked = await decisions.blocking(tx, call.organization_id, policed)
        return OperationAnswer(body=request_wire.record_list(found, blocked))

    async def retrieve(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/requests/{request_id}"""
        request_id = request_wire.request_id(call)
        async with self.database.transaction() as tx:
            found = await service.retrieve(tx, call.organization_id, request_id)
            policed = request_wire.policed([found])
            blocked = await decisions.blocking(tx, call.organization_id, policed)
        return OperationAnswer(body=request_wire.record(found, blocked.get(request_id, ())))

    async def report(
        self, call: OperationCall[Admin, None, RequestRollupsQuery]
    ) -> OperationAnswer:
        """GET /manage/v1/organization/request_rollups"""
        query, group_by = call.query, request_wire.grouping(call.query)
        end = None if isinstance(query.end_time, UnsetType) else query.end_time
        hours = service.hours(query.start_time, end, now=call.now)
        async with self.report_database.transaction() as tx:
            found = await service.tallies(tx, call.organization_id, hours, group_by)
        return OperationAnswer(body=request_wire.rollups(hours, group_by, found))
