"""Decisions of a policy: single decisions and daily sums."""

from dataclasses import dataclass

from msgspec import UnsetType

from tollhouse.api import parameters
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.handlers.reports import ReportReader
from tollhouse.api.wire import decisions as decision_wire
from tollhouse.api.wire import resources as wire
from tollhouse.contract.decisions import PolicyDecisionList, PolicyRollupsQuery
from tollhouse.contract.listing import ListQuery
from tollhouse.decisions import service
from tollhouse.decisions.types import ReportedDecision
from tollhouse.keys.types import Admin
from tollhouse.policies import service as policies
from tollhouse.storage.database import Database


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionHandlers:
    """Handlers of the decisions of one policy."""

    reports: ReportReader

    async def page(self, call: OperationCall[Admin, None, ListQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/policies/{policy_id}/decisions"""
        policy_id, after = parameters.policy_id(call), decision_wire.place(call.query.after)

        async def read(database: Database) -> list[ReportedDecision]:
            async with database.transaction() as tx:
                await policies.retrieve(tx, call.organization_id, policy_id)
                return await service.page(
                    tx, call.organization_id, policy_id, after=after, limit=call.query.limit + 1
                )

        found = await self.reports.reads.run(read)
        return OperationAnswer(
            body=wire.page(PolicyDecisionList, found, call.query.limit, decision_wire.decision)
        )

    async def report(self, call: OperationCall[Admin, None, PolicyRollupsQuery]) -> OperationAnswer:
        """GET /manage/v1/organization/policies/{policy_id}/rollups"""
        policy_id, query = parameters.policy_id(call), call.query
        end = None if isinstance(query.end_time, UnsetType) else query.end_time
        days = service.days(query.start_time, end, now=call.now)

        async def read(database: Database) -> OperationAnswer:
            async with database.transaction() as tx:
                await policies.retrieve(tx, call.organization_id, policy_id)
                found = await service.tallies(tx, call.organization_id, policy_id, days)
            return OperationAnswer(body=decision_wire.rollups(found))

        return await self.reports.reads.run(read)
