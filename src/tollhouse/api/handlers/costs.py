"""The report of costs under `/v1`."""

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec import UNSET, UnsetType

from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.handlers import reports
from tollhouse.api.handlers.reports import ReportReader
from tollhouse.base.money import to_decimal_string
from tollhouse.contract import costs as costs_wire
from tollhouse.keys.types import Admin
from tollhouse.reports import rules
from tollhouse.reports.types import Bucket, CostLine, CostSubject


@dataclass(frozen=True, kw_only=True, slots=True)
class CostHandlers:
    """Handlers of the report of costs."""

    reports: ReportReader

    async def report(
        self, call: OperationCall[Admin, None, costs_wire.CostsQuery]
    ) -> OperationAnswer:
        """GET /v1/organization/costs"""
        page = await self.reports.page(call, CostSubject.COSTS)
        body = costs_wire.CostPage(
            data=wire_buckets(page.report.buckets),
            has_more=page.next_cursor is not None,
            next_page=page.next_cursor,
            unsettled=unsettled(page.report.buckets),
        )
        return OperationAnswer(body=body, headers=reports.headers(page.report))


def wire_buckets(buckets: Iterable[Bucket]) -> list[costs_wire.CostBucket]:
    """Convert buckets, with exact amounts."""
    return [
        costs_wire.CostBucket(
            start_time=bucket.span.start,
            end_time=bucket.span.end,
            results=[_result(line) for line in rules.cost_lines(bucket.used)],
        )
        for bucket in buckets
    ]


def unsettled(buckets: Iterable[Bucket]) -> list[costs_wire.UnsettledCosts] | UnsetType:
    """Convert the requests that have no final cost yet, of the buckets that have any."""
    found = [
        costs_wire.UnsettledCosts(
            start_time=bucket.span.start,
            requests=bucket.unsettled.requests,
            amount=costs_wire.CostAmount(value=to_decimal_string(bucket.unsettled.held_pico_usd)),
        )
        for bucket in buckets
        if bucket.unsettled.requests
    ]
    return found or UNSET


def _result(line: CostLine) -> costs_wire.CostResult:
    group = line.group
    return costs_wire.CostResult(
        amount=costs_wire.CostAmount(value=to_decimal_string(line.amount)),
        line_item=line.line_item,
        project_id=None if group.project_id is None else str(group.project_id),
        api_key_id=None if group.api_key_id is None else str(group.api_key_id),
    )
