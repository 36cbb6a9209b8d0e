"""Records of requests: recent ones, one by its ID, and hourly sums."""

from dataclasses import dataclass

from msgspec import UnsetType

from tollhouse.activity import service
from tollhouse.api import parameters, request_search
from tollhouse.api.admin_database import AdminDatabase
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.handlers.reports import ReportReader
from tollhouse.api.request_search import RequestSearch
from tollhouse.api.wire import requests as request_wire
from tollhouse.base.ids import RequestId
from tollhouse.base.permissions import Permission
from tollhouse.contract.listing import NoQuery
from tollhouse.contract.requests import RequestRollupsQuery, RequestsQuery
from tollhouse.decisions import service as decisions
from tollhouse.keys.errors import InsufficientPermissions
from tollhouse.keys.types import Admin
from tollhouse.storage.database import Database


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestHandlers:
    """Handlers of the records of requests."""

    database: AdminDatabase
    reports: ReportReader

    async def page(self, call: OperationCall[Admin, None, RequestsQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/requests"""
        query = call.query
        policy_id = request_wire.policy_id(query)
        if policy_id is not None and not call.caller.holds(Permission.POLICIES_READ):
            raise InsufficientPermissions(missing=Permission.POLICIES_READ)
        after = parameters.cursor(query.after)
        search = RequestSearch(only=request_wire.filter_(query), policy_id=policy_id)

        async def read(database: Database) -> OperationAnswer:
            async with database.transaction() as tx:
                found = await request_search.page(
                    tx,
                    call.organization_id,
                    search,
                    after=None if after is None else RequestId(after),
                    limit=query.limit,
                )
                blocked = await request_search.blocked(tx, call.organization_id, found)
                gaps = await service.gaps(tx, search.only)
            return OperationAnswer(body=request_wire.record_list(found, blocked, gaps))

        return await self.reports.reads.run(read)

    async def retrieve(self, call: OperationCall[Admin, None, NoQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/requests/{request_id}"""
        request_id = request_wire.request_id(call)
        async with self.database.transaction() as tx:
            found = await service.retrieve(tx, call.organization_id, request_id)
            policed = request_wire.policed([found])
            blocked = await decisions.blocking(tx, call.organization_id, policed)
            judged = (
                await decisions.of_request(tx, call.organization_id, request_id)
                if call.caller.holds(Permission.POLICIES_READ)
                else []
            )
            policy_ids = {one.policy_id for each in judged for one in each.decisions}
            names = await decisions.policy_names(tx, call.organization_id, list(policy_ids))
        return OperationAnswer(
            body=request_wire.details(found, blocked.get(request_id, ()), judged, names)
        )

    async def report(
        self, call: OperationCall[Admin, None, RequestRollupsQuery]
    ) -> OperationAnswer:
        """GET /manage/v1/organization/request_rollups"""
        query, group_by = call.query, request_wire.grouping(call.query)
        end = None if isinstance(query.end_time, UnsetType) else query.end_time
        hours = service.hours(query.start_time, end, now=call.now)

        async def read(database: Database) -> OperationAnswer:
            async with database.transaction() as tx:
                found = await service.tallies(tx, call.organization_id, hours, group_by)
            return OperationAnswer(body=request_wire.rollups(hours, group_by, found))

        return await self.reports.reads.run(read)
