"""Reports from a streaming standby: when it has what the primary has, and when it is not read."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import pytest_asyncio

from tests.identity.waiting import until
from tests.storage.cluster import Cluster, running_cluster, running_standby
from tollhouse.activity.errors import RequestNotFound
from tollhouse.observability import registry
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable
from tollhouse.storage.replica import ReportReads

SECONDS_MAX = 60.0
POOL_SIZE = 3


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


@asynccontextmanager
async def reads_at(
    url: str, primary: Database, *, retry_seconds: float = 0.0
) -> AsyncGenerator[ReportReads]:
    reads = ReportReads(primary, partial(connect, url), retry_seconds=retry_seconds)
    try:
        yield reads
    finally:
        await reads.close()


def reads_by(server: str) -> float:
    series = f'tollhouse_database_replica_reads_total{{server="{server}"}} '
    page = registry.exposition(None).decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in page if line.startswith(series))


async def test_a_standby_answers_what_was_just_written(
    pair: tuple[Cluster, Cluster], primary: Database
) -> None:
    async def find(database: Database) -> tuple[int, bool]:
        return await count(database, number=1), await is_on_standby(database)

    before = reads_by("replica")
    async with reads_at(pair[1].url, primary) as reads:
        await reads.run(is_on_standby)
        async with paused(pair[1]):
            await write(primary, 1)
            waiting = asyncio.create_task(reads.run(find))
            await asyncio.sleep(0)
            is_waiting = not waiting.done()
        found = await waiting

    assert is_waiting
    assert found == (1, True)
    assert reads_by("replica") == before + 2


async def test_without_a_standby_the_primary_answers_and_nothing_is_counted(
    primary: Database,
) -> None:
    before = reads_by("primary")

    assert not await ReportReads(primary).run(is_on_standby)
    assert reads_by("primary") == before


@pytest.mark.clock
async def test_a_late_standby_is_left_alone_until_it_has_caught_up(
    pair: tuple[Cluster, Cluster], primary: Database
) -> None:
    before = reads_by("primary")
    async with reads_at(pair[1].url, primary) as reads:
        async with paused(pair[1]):
            await write(primary, 2)
            late_answer = await reads.run(is_on_standby)
            reason = reads.reason
        answer = await reads.run(is_on_standby)

    assert not late_answer
    assert reason == "it was away or late"
    assert answer
    assert reads_by("primary") == before + 1


async def test_a_standby_that_dies_is_not_asked_for_a_while_and_read_when_it_is_back(
    pair: tuple[Cluster, Cluster], primary: Database
) -> None:
    async with (
        reads_at(pair[1].url, primary) as reads,
        reads_at(pair[1].url, primary, retry_seconds=SECONDS_MAX) as patient,
    ):
        await pair[1].kill()
        away = [await each.run(is_on_standby) for each in (reads, patient)]
        reason = reads.reason
        await pair[1].start()

        async def is_back() -> bool:
            return await reads.run(is_on_standby)

        await until(is_back)
        not_yet = await patient.run(is_on_standby)

    assert away == [False, False]
    assert reason
    assert not not_yet


async def test_a_read_that_the_standby_cancels_is_repeated_and_a_refusal_is_not(
    pair: tuple[Cluster, Cluster], primary: Database
) -> None:
    runs: list[bool] = []

    async def fail_on_standby(database: Database) -> bool:
        runs.append(await is_on_standby(database))
        if runs[-1]:
            raise DatabaseUnavailable
        return True

    async def refuse(database: Database) -> None:
        runs.append(await is_on_standby(database))
        raise RequestNotFound

    async with reads_at(pair[1].url, primary) as reads:
        assert await reads.run(fail_on_standby)
        with pytest.raises(RequestNotFound):
            await reads.run(refuse)

    assert runs == [True, False, True]


@pytest.mark.nightly
async def test_a_primary_and_the_standby_of_another_server_are_not_read(
    pair: tuple[Cluster, Cluster], primary: Database
) -> None:
    async with reads_at(pair[0].url, primary) as itself:
        on_itself = await itself.standby()
    async with reads_at(f"{pair[0].url}?target_session_attrs=any", primary) as chosen:
        on_chosen = await chosen.standby()
    async with (
        running_cluster() as stranger,
        running_standby(stranger) as foreign,
        reads_at(foreign.url, primary) as other,
    ):
        on_other = await other.standby()

    assert on_itself is on_chosen is on_other is None
    assert itself.reason == f"127.0.0.1:{pair[0].port}: it is a primary, not a standby"
    assert chosen.reason == other.reason == "it is no standby of this database"
