"""A report that has begun is not robbed of its entries by retention."""

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from tests.identity.waiting import until_a_lock_is_awaited
from tests.reports import events
from tests.reports.past import Past
from tollhouse.base.ids import OrganizationId
from tollhouse.reports import store
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
