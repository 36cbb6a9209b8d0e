"""Retention takes nothing from a report that has begun, and leaves the sums of old days whole."""

import asyncio
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import asyncpg
import pytest

from tests.identity.waiting import until_a_lock_is_awaited
from tests.reports import events
from tests.reports.past import Past
from tollhouse.base.ids import OrganizationId
from tollhouse.ledger import hour_retention, verification
from tollhouse.ledger.hour_retention import REMOVED_AFTER
from tollhouse.reports import service, store
from tollhouse.reports.errors import HoursAreGone
from tollhouse.reports.types import CostFilter, CostQuery, CostSubject, ReportSpan, Width
from tollhouse.storage.database import Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

DAY = datetime(2026, 1, 31, tzinfo=UTC)
SPAN = ReportSpan(start=int(DAY.timestamp()) + 1, end=int(DAY.timestamp()) + 3599)
QUESTION = CostQuery(
    subject=CostSubject.COSTS,
    start=SPAN.start,
    width=Width.DAY,
    only=CostFilter(),
    grouping=frozenset(),
)


async def test_a_day_is_taken_away_only_after_the_reports_that_see_it(
    past: Past, database: Database, database_url: str
) -> None:
    owner = OrganizationId(past.organization_id)
    await events.make_partitions(past.connection, DAY.date(), DAY.date())
    await events.hold(
        *(past.connection, owner, past.keys, 50), since=DAY, until=DAY + timedelta(hours=1)
    )
    await events.resolve(past.connection, owner)
    retention = await asyncpg.connect(database_url)

    async with database.transaction() as tx:
        await store.hold_still(tx)
        assert not await store.is_closed(tx, SPAN)
        closing = asyncio.create_task(events.close_day(retention, DAY.date()))
        await until_a_lock_is_awaited(database_url)
        (used,) = await store.entries(tx, owner, QUESTION, SPAN)
        assert not closing.done()
    await closing
    await retention.close()

    assert used.sums.requests > 0
    async with database.transaction() as tx:
        await store.hold_still(tx)
        assert await store.is_closed(tx, SPAN)
        assert await store.entries(tx, owner, QUESTION, SPAN) == []


async def _costs(database: Database, owner: OrganizationId, start: int, end: int) -> int:
    """Return the cost of a range, in whole days, hours and entries as the range needs them."""
    question = replace(QUESTION, start=start)
    place = service.first_place(question, end, now=datetime.now(UTC))
    assert place is not None
    async with database.transaction() as tx:
        report = await service.read(tx, owner, question, place, buckets_max=3)
    return sum(
        used.sums.input_pico_usd + used.sums.output_pico_usd
        for bucket in report.buckets
        for used in bucket.used
    )


async def _hours(past: Past, day: date) -> int:
    return await past.connection.fetchval(
        """
        SELECT count(*)
          FROM cost_hourly
         WHERE organization_id = $1
           AND (hour AT TIME ZONE 'UTC')::date = $2
        """,
        past.organization_id,
        day,
    )


async def test_hours_of_old_closed_days_go_and_their_days_stay(
    past: Past, database: Database
) -> None:
    """The day before the oldest is as old, but has an open hold: it is not closed."""
    owner = OrganizationId(past.organization_id)
    midnight = datetime.combine(datetime.now(UTC), time(), UTC)
    oldest = midnight - REMOVED_AFTER - timedelta(days=1)
    young, unclosed = oldest + timedelta(days=2), oldest - timedelta(days=1)
    for since in (oldest, young, unclosed):
        await events.make_partitions(past.connection, since.date(), since.date())
        await events.hold(
            *(past.connection, owner, past.keys, 50), since=since, until=since + timedelta(hours=5)
        )
    await events.resolve(past.connection, owner)
    for since in (oldest, young):
        await events.close_day(past.connection, since.date())
    start = int(oldest.timestamp())
    before = await _costs(database, owner, start, start + 86_400)

    await hour_retention.remove_old(database)

    assert await _hours(past, oldest.date()) == 0
    assert await _hours(past, young.date()) > 0
    assert await _hours(past, unclosed.date()) > 0
    assert before == await _costs(database, owner, start, start + 86_400) > 0
    for range_ in ((start + 3600, start + 86_400), (start, start + 3600)):
        with pytest.raises(HoursAreGone) as refused:
            await _costs(database, owner, *range_)
        assert refused.value.param == ("end_time" if range_[0] == start else "start_time")
    young_start = int(young.timestamp())
    two_hours = await _costs(database, owner, young_start, young_start + 2 * 3600)
    assert two_hours == await past.connection.fetchval(
        """
        SELECT sum(input_pico + output_pico)
          FROM dropped
         WHERE organization_id = $1
           AND phase = 1
           AND admitted_at >= $2
           AND admitted_at < $2 + interval '2 hours'
        """,
        owner,
        young,
    )
    assert two_hours > 0
    assert [
        difference
        for difference in await verification.verify(database, owner)
        if difference.name.startswith("cost_hourly")
        and not difference.subject.startswith(str(young.date()))
    ] == []
