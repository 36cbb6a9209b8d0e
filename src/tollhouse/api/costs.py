"""The given report of costs."""

from collections.abc import Iterable

from tollhouse.api import reports
from tollhouse.api.call import Answer, Call
from tollhouse.base.money import to_decimal_string
from tollhouse.contract import costs as costs_wire
from tollhouse.keys.types import Admin
from tollhouse.reports import rules
from tollhouse.reports.types import Bucket, CostLine, Subject


async def report(call: Call[Admin, None, costs_wire.CostsQuery]) -> Answer:
    """GET /v1/organization/costs"""
    page = await reports.page(call, Subject.COSTS)
    body = costs_wire.CostPage(
        data=wire_buckets(page.report.buckets),
        has_more=page.next_cursor is not None,
        next_page=page.next_cursor,
    )
    return Answer(body=body, headers=reports.headers(page.report))


def wire_buckets(buckets: Iterable[Bucket]) -> list[costs_wire.CostBucket]:
    """With exact amounts."""
    return [
        costs_wire.CostBucket(
            start_time=bucket.span.start,
            end_time=bucket.span.end,
            results=[_result(line) for line in rules.cost_lines(bucket.used)],
        )
        for bucket in buckets
    ]


def _result(line: CostLine) -> costs_wire.CostResult:
    group = line.group
    return costs_wire.CostResult(
        amount=costs_wire.CostAmount(value=to_decimal_string(line.amount)),
        line_item=line.line_item,
        project_id=None if group.project_id is None else str(group.project_id),
        api_key_id=None if group.api_key_id is None else str(group.api_key_id),
    )
