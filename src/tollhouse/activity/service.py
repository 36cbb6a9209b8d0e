"""Operations on records of requests: read one, list them, sum them by the hour."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from tollhouse.activity import rules, search, store
from tollhouse.activity.errors import (
    RangeTooLong,
    RecordKeyNotFound,
    RecordProjectNotFound,
    RequestNotFound,
    TooManyGroups,
)
from tollhouse.activity.types import (
    HourlyTotal,
    HourRange,
    RecordCursor,
    RecordFilter,
    RecordGap,
    RecordGrouping,
    RecordPage,
    RequestRecord,
)
from tollhouse.base.clock import Clock
from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import OrganizationId, RequestId, day_of
from tollhouse.base.ranges import range_end
from tollhouse.base.retention import HOURS_KEPT
from tollhouse.storage import partitions
from tollhouse.storage.batches import in_batches
from tollhouse.storage.database import Database, Transaction
from tollhouse.storage.leases import LeasedJob
from tollhouse.storage.partitions import DailyTable, Partition

HOURS_MAX: Final = 744
"""The hours of the longest month."""
ROWS_MAX: Final = 10_000
GAPS_MAX: Final = 20


async def retrieve(
    tx: Transaction, organization_id: OrganizationId, request_id: RequestId
) -> RequestRecord:
    """Return a request of this organization. Raises `RequestNotFound`."""
    day = day_of(request_id)
    record = None if day is None else await store.get(tx, organization_id, request_id, day)
    if record is None:
        raise RequestNotFound
    return record


async def find(tx: Transaction, request_id: RequestId) -> RequestRecord:
    """Return a request of any organization, for the operator only. Raises `RequestNotFound`."""
    day = day_of(request_id)
    record = None if day is None else await store.find(tx, request_id, day)
    if record is None:
        raise RequestNotFound
    return record


async def page(
    tx: Transaction,
    organization_id: OrganizationId,
    only: RecordFilter,
    *,
    after: RequestId | None,
    limit: int,
) -> RecordPage:
    """Return a page of requests, newest first.

    A page may be short although more requests follow, if the filter matches few of them.
    """
    await _refuse_strangers(tx, organization_id, only)
    before = await _place(tx, organization_id, after)
    found, is_cut = await search.search(tx, organization_id, only, before, limit=limit + 1)
    return rules.page(found, limit=limit, is_cut=is_cut)


async def gaps(tx: Transaction, only: RecordFilter) -> list[RecordGap]:
    """Return the latest gaps in the records within the range of a filter, newest first."""
    return await store.gaps(tx, only.start, only.end, limit=GAPS_MAX)


async def last_recorded(
    tx: Transaction, organization_id: OrganizationId, request_ids: Sequence[RequestId]
) -> RequestId | None:
    """Return the oldest of these requests that has a record, or None."""
    return await store.oldest_of(tx, organization_id, request_ids)


async def tallies(
    tx: Transaction,
    organization_id: OrganizationId,
    asked: HourRange,
    grouping: RecordGrouping | None,
) -> list[HourlyTotal]:
    """Return the totals per hour and group, without hours and groups that have no requests."""
    counted = await store.hours(tx, organization_id, asked, grouping, rows_max=ROWS_MAX + 1)
    if len(counted) > ROWS_MAX:
        raise TooManyGroups(rows_max=ROWS_MAX)
    return rules.tallies(counted)


def hours(start: int, end: int | None, *, now: datetime) -> HourRange:
    """Return the whole hours that contain a range of seconds; without an end, it ends now.

    An empty range has no hours. Raises `RangeReversed` or `RangeTooLong`.
    """
    resolved = range_end(start, end, now=now)
    if resolved is None:
        return HourRange(start=start, end=start)
    touched = rules.hours(start, resolved)
    if touched.end - touched.start > HOURS_MAX * rules.HOUR_SECONDS:
        raise RangeTooLong(hours_max=HOURS_MAX)
    return touched


async def remove_old_hours(database: Database, now: datetime) -> None:
    """Delete hourly sums that are older than any report shows."""
    await in_batches(database, partial(store.remove_hours, first_kept=(now - HOURS_KEPT).date()))


def retention_job(
    database: Database,
    clock: Clock,
    *,
    record_days: int,
    is_archived: Callable[[Partition], Awaitable[bool]] | None,
) -> LeasedJob:
    """Return the job that drops old days of records and deletes old hourly sums.

    With `is_archived`, only days for which it returns True are dropped.
    """

    async def remove_old() -> None:
        await partitions.remove_old(
            database, DailyTable.REQUESTS, days_kept=record_days, prepare=is_archived
        )
        await remove_old_hours(database, clock.now())
        async with database.transaction() as tx:
            first_kept = (clock.now() - timedelta(days=record_days)).date()
            await store.remove_gaps(tx, first_kept)

    seconds = partitions.KEEP_EVERY.total_seconds()
    return LeasedJob(name="activity-retention", every_seconds=seconds, run=remove_old)


async def _refuse_strangers(
    tx: Transaction, organization_id: OrganizationId, only: RecordFilter
) -> None:
    if only.project_id is not None and not await store.has_project(
        tx, organization_id, only.project_id
    ):
        raise RecordProjectNotFound
    if only.api_key_id is not None and not await store.has_project_key(
        tx, organization_id, only.api_key_id
    ):
        raise RecordKeyNotFound


async def _place(
    tx: Transaction, organization_id: OrganizationId, after: RequestId | None
) -> RecordCursor:
    before = rules.cursor(after)
    if after is not None and await store.get(tx, organization_id, after, before.day) is None:
        raise UnknownCursor
    return before
