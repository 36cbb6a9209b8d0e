"""Reads from a streaming standby: how late it is, and when the primary answers instead."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import pytest
import pytest_asyncio

from tests.storage.cluster import Cluster, running_cluster, running_standby
from tests.storage.tcp_proxy import proxied
from tollhouse.activity.errors import RequestNotFound
from tollhouse.observability import registry
from tollhouse.storage.database import Database
from tollhouse.storage.replica import DatabaseReplica, ReplicaReads, ReplicaState

SECONDS_MAX = 60.0
POOL_SIZE = 3
LAG_SECONDS_MAX = 5.0
SHORT_LAG_SECONDS = 0.2


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def pair() -> AsyncIterator[tuple[Cluster, Cluster]]:
    """A primary with a table, and its standby."""
    async with running_cluster() as primary:
        await primary.execute("CREATE TABLE written (number int)")
        async with running_standby(primary) as standby:
            yield primary, standby


@pytest.fixture
async def primary(pair: tuple[Cluster, Cluster]) -> AsyncIterator[Database]:
    async with pooled(pair[0].url) as database:
        yield database


@asynccontextmanager
async def pooled(url: str, *, wants_standby: bool = False) -> AsyncGenerator[Database]:
    database = await connect(url, wants_standby=wants_standby)
    try:
        yield database
    finally:
        await database.close()


async def connect(url: str, *, wants_standby: bool = True) -> Database:
    return await Database.connect(
        url,
        pool_size=POOL_SIZE,
        acquire_seconds=SECONDS_MAX,
        statement_seconds=SECONDS_MAX,
        wants_standby=wants_standby,
    )


@asynccontextmanager
async def replica_at(
    url: str, primary: Database, *, lag_seconds_max: float = LAG_SECONDS_MAX
) -> AsyncGenerator[DatabaseReplica]:
    replica = DatabaseReplica(
        primary, partial(connect, url), reads_max=POOL_SIZE - 1, lag_seconds_max=lag_seconds_max
    )
    try:
        yield replica
    finally:
        await replica.close()


async def until(replica: DatabaseReplica, state: ReplicaState) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while replica.state is not state:
            await replica.look()


@asynccontextmanager
async def paused(standby: Cluster) -> AsyncGenerator[None]:
    """The standby receives and replays nothing."""
    await standby.execute("SELECT pg_wal_replay_pause()")
    async with pooled(standby.url, wants_standby=True) as database:
        while await replay_state(database) != "paused":
            await database.fetch_all("SELECT pg_sleep(0.01)")
    try:
        yield
    finally:
        await standby.execute("SELECT pg_wal_replay_resume()")


async def replay_state(database: Database) -> str:
    return (await database.fetch_all("SELECT pg_get_wal_replay_pause_state() AS state"))[0]["state"]


async def is_on_standby(database: Database) -> bool:
    return (await database.fetch_all("SELECT pg_is_in_recovery() AS answer"))[0]["answer"]


async def write(primary: Database, number: int) -> None:
    async with primary.transaction() as tx:
        await tx.execute("INSERT INTO written VALUES ($1)", number)


async def count(database: Database, *, number: int) -> int:
    rows = await database.fetch_all("SELECT count(*) FROM written WHERE number = $1", number)
    return rows[0]["count"]


def reads_by(server: str, reason: str) -> float:
    series = f'tollhouse_database_replica_reads_total{{reason="{reason}",server="{server}"}} '
    page = registry.exposition(None).decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in page if line.startswith(series))


async def test_a_standby_in_time_answers_and_the_lag_is_shown(
    pair: tuple[Cluster, Cluster], primary: Database
) -> None:
    before = reads_by("replica", "ready")
    async with replica_at(pair[1].url, primary) as replica:
        await replica.settle()

        answered = await ReplicaReads(primary, replica).run(is_on_standby)

    assert answered
    assert 0 <= replica.lag_seconds < LAG_SECONDS_MAX
    assert reads_by("replica", "ready") == before + 1
    assert f"tollhouse_database_replica_lag_seconds {replica.lag_seconds}" in (
        registry.exposition(None).decode()
    )


async def test_a_busy_standby_does_not_seem_away(
    pair: tuple[Cluster, Cluster], primary: Database
) -> None:
    async with replica_at(pair[1].url, primary) as replica, AsyncExitStack() as busy:
        await until(replica, ReplicaState.READY)
        assert replica.database is not None
        for _ in range(POOL_SIZE - 1):
            await busy.enter_async_context(replica.database.snapshot())

        await replica.look()

        assert replica.state is ReplicaState.READY


async def test_without_a_standby_the_primary_answers_and_nothing_is_counted(
    primary: Database,
) -> None:
    assert not await ReplicaReads(primary).run(is_on_standby)


async def test_a_late_standby_is_not_read_until_it_has_caught_up(
    pair: tuple[Cluster, Cluster], primary: Database
) -> None:
    before = reads_by("primary", "late")
    async with replica_at(pair[1].url, primary, lag_seconds_max=SHORT_LAG_SECONDS) as replica:
        reads = ReplicaReads(primary, replica)
        await until(replica, ReplicaState.READY)
        async with paused(pair[1]):
            await write(primary, 1)
            await until(replica, ReplicaState.LATE)
            late_answer = await reads.run(is_on_standby)
            lag_seconds = replica.lag_seconds
        await until(replica, ReplicaState.READY)
        answer = await reads.run(is_on_standby)

    assert not late_answer
    assert lag_seconds > SHORT_LAG_SECONDS
    assert answer
    assert reads_by("primary", "late") == before + 1


async def test_a_standby_that_dies_is_away_and_read_again_when_it_is_back(
    pair: tuple[Cluster, Cluster], primary: Database
) -> None:
    before = reads_by("primary", "away")
    async with replica_at(pair[1].url, primary) as replica:
        reads = ReplicaReads(primary, replica)
        await until(replica, ReplicaState.READY)
        await pair[1].kill()
        # Not noticed yet: the read itself fails there, and is repeated.
        noticed_by_reading = await reads.run(is_on_standby)
        await replica.look()
        away = await reads.run(is_on_standby)
        reason = replica.reason
        await pair[1].start()
        await until(replica, ReplicaState.READY)
        back = await reads.run(is_on_standby)

    assert not noticed_by_reading
    assert not away
    assert reason
    assert reads_by("primary", "away") == before + 1
    assert back


async def test_a_standby_that_is_away_at_first_is_found_later(
    pair: tuple[Cluster, Cluster], primary: Database
) -> None:
    await pair[1].kill()
    async with replica_at(pair[1].url, primary) as replica:
        await replica.settle()
        state = replica.state
        await pair[1].start()
        await until(replica, ReplicaState.READY)

    assert state is ReplicaState.AWAY


@pytest.mark.nightly
async def test_a_frozen_standby_is_away_within_seconds(
    pair: tuple[Cluster, Cluster], primary: Database
) -> None:
    async with replica_at(pair[1].url, primary) as replica:
        await until(replica, ReplicaState.READY)
        with pair[1].frozen():
            await replica.look()
            state, reason = replica.state, replica.reason
            answered = await ReplicaReads(primary, replica).run(is_on_standby)
        await until(replica, ReplicaState.READY)

    assert state is ReplicaState.AWAY
    assert reason == "it does not answer within 2 s"
    assert not answered


async def test_what_the_standby_does_not_know_yet_is_read_from_the_primary(
    pair: tuple[Cluster, Cluster], primary: Database
) -> None:
    async def find(database: Database) -> int:
        if not await count(database, number=2):
            raise RequestNotFound
        return 2

    before = reads_by("primary", "failed")
    async with replica_at(pair[1].url, primary) as replica:
        await until(replica, ReplicaState.READY)
        async with paused(pair[1]):
            await write(primary, 2)

            found = await ReplicaReads(primary, replica).run(find)

    assert found == 2
    assert reads_by("primary", "failed") == before + 1


async def test_a_complete_read_waits_for_all_that_was_committed(
    pair: tuple[Cluster, Cluster], primary: Database
) -> None:
    async def find(database: Database) -> tuple[int, bool]:
        return await count(database, number=3), await is_on_standby(database)

    async with replica_at(pair[1].url, primary) as replica:
        reads = ReplicaReads(primary, replica)
        await until(replica, ReplicaState.READY)
        async with paused(pair[1]):
            await write(primary, 3)
            stale = await reads.run(find)
            waiting = asyncio.create_task(reads.run(find, is_complete=True))
            await replica.look()
            is_waiting = not waiting.done()
        complete = await waiting

    assert stale == (0, True)
    assert is_waiting
    assert complete == (1, True)


@pytest.mark.nightly
@pytest.mark.clock
async def test_a_primary_and_the_standby_of_another_server_are_not_read(
    pair: tuple[Cluster, Cluster], primary: Database
) -> None:
    async with replica_at(pair[0].url, primary) as itself:
        await itself.look()
    async with replica_at(f"{pair[0].url}?target_session_attrs=any", primary) as chosen:
        await chosen.look()
    async with (
        running_cluster() as stranger,
        running_standby(stranger) as foreign,
        replica_at(foreign.url, primary) as other,
    ):
        await other.look()

    assert itself.state is chosen.state is other.state is ReplicaState.AWAY
    assert itself.reason == f"127.0.0.1:{pair[0].port}: it is a primary, not a standby"
    assert chosen.reason == "it is a primary, not a standby"
    assert other.reason == "it is a standby of another server"


async def test_a_read_on_the_standby_of_another_server_delays_no_look_and_is_waited_for(
    pair: tuple[Cluster, Cluster],
) -> None:
    """The primary is lost, and the next host of its URL is not the one that the standby follows."""
    async with (
        running_cluster() as stranger,
        proxied(pair[0].url) as (url, wire),
        pooled(f"{url.removesuffix('/postgres')},127.0.0.1:{stranger.port}/postgres") as primary,
        replica_at(pair[1].url, primary) as replica,
    ):
        await until(replica, ReplicaState.READY)
        assert replica.database is not None
        async with replica.database.snapshot() as read:
            wire.cut()
            await until(replica, ReplicaState.AWAY)
            async with asyncio.timeout(SECONDS_MAX):
                await replica.look()
            reason = replica.reason
            closing = asyncio.create_task(replica.close())
            # A round trip, in which nothing but the read keeps the pool open.
            value = await read.fetch_value("SELECT 1")
            is_waiting = not closing.done()
        await closing

    assert reason == "it is a standby of another server"
    assert value == 1
    assert is_waiting
