"""What the two reports have in common: how they are asked, and what surrounds their buckets."""

from typing import TypeVar

from msgspec import UnsetType

from tollhouse.api.call import Call
from tollhouse.contract import costs
from tollhouse.contract.costs import CostsQuery
from tollhouse.contract.usage import UsageQuery
from tollhouse.keys.types import Admin
from tollhouse.reports import service
from tollhouse.reports.service import Asked, Page
from tollhouse.reports.types import Dimension, Question, Report, Subject, Width

WIDTHS = {"1h": Width.HOUR, "1d": Width.DAY}

T = TypeVar("T")


async def page(
    call: Call[Admin, None, CostsQuery] | Call[Admin, None, UsageQuery], subject: Subject
) -> Page:
    """Read the page that a call asks for."""
    query = call.query
    costs.check(query)
    asked = Asked(
        question=Question(
            subject=subject,
            start=query.start_time,
            width=WIDTHS[query.bucket_width],
            only=service.filter_of(_sent(query.project_ids), _sent(query.api_key_ids)),
            grouping=frozenset(map(Dimension, _sent(query.group_by) or ())),
        ),
        end=_sent(query.end_time),
        cursor=_sent(query.page),
        buckets_max=query.limit,
    )
    house = call.house
    return await service.page(
        house.report_database, house.cursors, call.organization_id, asked, now=call.now
    )


def headers(report: Report) -> tuple[tuple[str, str], ...]:
    """Beside the body, whose form is given: how much is still unknown."""
    return ((costs.UNSETTLED_HEADER, str(report.unsettled)),)


def _sent(value: T | UnsetType) -> T | None:
    return None if isinstance(value, UnsetType) else value
