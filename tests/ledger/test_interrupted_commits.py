"""A commit that was interrupted while it waited for the standby is stored here, and nowhere else.

What finds it there must wait for a standby too: if this server is lost before, so is the change.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from tests.identity.waiting import until
from tests.ledger.money import new_batcher, new_payer, posted
from tests.storage.cluster import Cluster, running_cluster
from tollhouse.base.tasks import Tasks
from tollhouse.ledger.types import ResolutionResult
from tollhouse.storage import migrate
from tollhouse.storage.database import Database

STATEMENT_SECONDS = 1.0
WAIT_MAX = timedelta(seconds=60)
ENTRIES = "SELECT phase FROM ledger_entries WHERE reservation_id = $1 ORDER BY phase"
WAITING = "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@asynccontextmanager
async def no_standby(cluster: Cluster) -> AsyncGenerator[None]:
    """Let every commit in the block wait for a standby that is not there."""
    await cluster.execute("ALTER SYSTEM SET synchronous_standby_names = 'absent'")
    await cluster.execute("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        await cluster.execute("ALTER SYSTEM RESET synchronous_standby_names")
        await cluster.execute("SELECT pg_reload_conf()")


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with running_cluster() as running:
        await migrate.migrate(running.url)
        yield running


@pytest.fixture
async def replicated(cluster: Cluster) -> AsyncIterator[Database]:
    connected = await Database.connect(
        cluster.url, pool_size=4, acquire_seconds=5, statement_seconds=STATEMENT_SECONDS
    )
    yield connected
    await connected.close()


async def entries_of(database: Database, reservation_id: object) -> list[int]:
    return [row["phase"] for row in await database.fetch_all(ENTRIES, reservation_id)]


async def waits(database: Database) -> bool:
    return bool(await database.fetch_all(WAITING))


async def test_a_stored_hold_admits_only_when_a_standby_has_it(
    cluster: Cluster, replicated: Database
) -> None:
    tasks = Tasks()
    batcher = new_batcher(replicated, tasks)
    payer = await new_payer(replicated, credit=100)
    hold = payer.hold(60)

    async with no_standby(cluster):
        admitting = asyncio.ensure_future(batcher.admit(hold, wait_max=WAIT_MAX))

        async def is_stored() -> bool:
            return await entries_of(replicated, hold.reservation_id) == [0]

        async def is_asked_again() -> bool:
            return admitting.done() or await waits(replicated)

        await until(is_stored)
        await until(is_asked_again)
        assert not admitting.done()

    await admitting
    assert await batcher.resolve(posted(hold, 25)) is ResolutionResult.NOW
    assert await entries_of(replicated, hold.reservation_id) == [0, 1]
    assert await tasks.drain(deadline_seconds=10) == 0


async def test_a_stored_charge_is_told_only_when_a_standby_has_it(
    cluster: Cluster, replicated: Database
) -> None:
    tasks = Tasks()
    batcher = new_batcher(replicated, tasks)
    payer = await new_payer(replicated, credit=100)
    hold = payer.hold(60)
    await batcher.admit(hold, wait_max=WAIT_MAX)

    async with no_standby(cluster):
        settling = batcher.resolve(posted(hold, 25))

        async def is_stored() -> bool:
            return await entries_of(replicated, hold.reservation_id) == [0, 1]

        async def is_asked_again() -> bool:
            return settling.done() or await waits(replicated)

        await until(is_stored)
        await until(is_asked_again)
        assert not settling.done()

    assert await settling is not None
    assert await entries_of(replicated, hold.reservation_id) == [0, 1]
    assert await tasks.drain(deadline_seconds=10) == 0
