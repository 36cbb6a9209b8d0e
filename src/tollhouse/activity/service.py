"""Verbs on what is kept of requests: find one, page through them, add hours up."""

from datetime import datetime
from typing import Final

from tollhouse.activity import rules, search, store
from tollhouse.activity.errors import (
    EmptyRange,
    KeyNotFound,
    ProjectNotFound,
    RangeTooLong,
    RequestNotFound,
    TooManyGroups,
)
from tollhouse.activity.types import (
    Filter,
    Grouping,
    Hours,
    Place,
    RecordPage,
    RequestRecord,
    Tally,
    day_of,
)
from tollhouse.base.clock import unix_seconds
from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import OrganizationId, RequestId
from tollhouse.storage.database import Transaction

HOURS_MAX: Final = 744
"""The longest month."""
ROWS_MAX: Final = 10_000


async def retrieve(
    tx: Transaction, organization_id: OrganizationId, request_id: RequestId
) -> RequestRecord:
    """Read one of this organization's."""
    day = day_of(request_id)
    record = None if day is None else await store.get(tx, organization_id, request_id, day)
    if record is None:
        raise RequestNotFound
    return record


async def find(tx: Transaction, request_id: RequestId) -> RequestRecord:
    """Read one, whosever it is: for the operator alone."""
    day = day_of(request_id)
    record = None if day is None else await store.find(tx, request_id, day)
    if record is None:
        raise RequestNotFound
    return record


async def page(
    tx: Transaction,
    organization_id: OrganizationId,
    only: Filter,
    *,
    after: RequestId | None,
    limit: int,
) -> RecordPage:
    """Newest first. A filter that finds little may leave a page short although more follow."""
    await _refuse_strangers(tx, organization_id, only)
    before = await _place(tx, organization_id, after)
    found, is_cut = await search.search(tx, organization_id, only, before, limit=limit + 1)
    return rules.page(found, limit=limit, is_cut=is_cut)


async def tallies(
    tx: Transaction, organization_id: OrganizationId, asked: Hours, grouping: Grouping | None
) -> list[Tally]:
    """Sums by the hour; hours and groups without requests are left out."""
    counted = await store.hours(tx, organization_id, asked, grouping, rows_max=ROWS_MAX + 1)
    if len(counted) > ROWS_MAX:
        raise TooManyGroups(ROWS_MAX)
    return rules.tallies(counted)


def hours(start: int, end: int | None, *, now: datetime) -> Hours:
    """The whole hours of a range; one without an end ends now."""
    resolved = unix_seconds(now) + 1 if end is None else end
    if resolved <= start:
        raise EmptyRange
    touched = rules.hours(start, resolved)
    if touched.end - touched.start > HOURS_MAX * rules.HOUR_SECONDS:
        raise RangeTooLong(HOURS_MAX)
    return touched


async def _refuse_strangers(tx: Transaction, organization_id: OrganizationId, only: Filter) -> None:
    if only.project_id is not None and not await store.has_project(
        tx, organization_id, only.project_id
    ):
        raise ProjectNotFound
    if only.api_key_id is not None and not await store.has_project_key(
        tx, organization_id, only.api_key_id
    ):
        raise KeyNotFound


async def _place(
    tx: Transaction, organization_id: OrganizationId, after: RequestId | None
) -> Place:
    if after is None:
        return rules.NEWEST
    day = day_of(after)
    if day is None or await store.get(tx, organization_id, after, day) is None:
        raise UnknownCursor
    return Place(request_id=after, day=day)
