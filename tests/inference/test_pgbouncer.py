"""The whole gateway behind PgBouncer in transaction mode, with fewer servers than connections."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import msgspec
import pytest
import pytest_asyncio

from tests.faults.test_redis_gone import Load
from tests.inference.test_chat import cost
from tests.ledger.invariants import assert_conserved
from tests.support.deployment import Deployment, offering, open_deployment
from tests.support.organization_fixture import OrganizationFixture
from tests.support.pgbouncer import SERVERS, running_pgbouncer
from tests.support.shared_gateway import IMPATIENT
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings
from tollhouse.storage import partitions
from tollhouse.storage.database import Database
from tollhouse.storage.partitions import DailyTable
from tollhouse.storage.pooling import PoolingMode, StatementsNotKept, examine

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROLE_SETTINGS = "enable_seqscan = off", "jit = off", "idle_in_transaction_session_timeout = '60s'"


@pytest_asyncio.fixture(loop_scope="module")
async def pooled(settings: Settings, tmp_path: Path) -> AsyncIterator[Settings]:
    connection = await asyncpg.connect(settings.database.url)
    name = await connection.fetchval("SELECT current_database()")
    for setting in ROLE_SETTINGS:
        await connection.execute(f'ALTER ROLE CURRENT_USER IN DATABASE "{name}" SET {setting}')
    await connection.close()
    with running_pgbouncer(tmp_path, settings.database.url.removesuffix(IMPATIENT)) as url:
        database = msgspec.structs.replace(settings.database, url=url, prepared_statements=False)
        yield msgspec.structs.replace(settings, database=database)


@pytest_asyncio.fixture(loop_scope="module")
async def deployment(
    pooled: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> AsyncIterator[Deployment]:
    async with open_deployment(offering(pooled, upstream.base_url), upstream, org) as opened:
        yield opened


async def opened(settings: Settings, *, has_prepared_statements: bool) -> Database:
    return await Database.connect(
        settings.database.url,
        pool_size=4 * SERVERS,
        acquire_seconds=30,
        statement_seconds=30,
        has_prepared_statements=has_prepared_statements,
    )


async def test_answers_are_served_and_charged_once(deployment: Deployment) -> None:
    async with deployment.customer() as client:
        load = Load(client)
        await load.go_on()
        await load.go_on()
        usages = await load.stop()

    credit = await deployment.settled(len(usages))
    assert credit.settled_pico_usd == sum(map(cost, usages))
    await assert_conserved(deployment.org.database)


async def test_statements_of_many_connections_share_servers(pooled: Settings) -> None:
    database = await opened(pooled, has_prepared_statements=False)

    async def numbers(count: int) -> list[int]:
        rows = await database.fetch_all("SELECT generate_series(1, $1::int) AS n", count)
        return [row["n"] for row in rows]

    found = await asyncio.gather(*(numbers(count) for count in range(100)))
    async with database.transaction() as tx:
        day = await partitions.today(tx)
        await partitions.make(tx, DailyTable.REQUESTS, first_day=day, last_day=day)
        kept = await tx.fetch_value("SELECT current_setting('enable_seqscan')")
    await database.close()

    assert found == [list(range(1, count + 1)) for count in range(100)]
    assert kept == "off"


async def test_an_old_day_is_dropped_outside_a_transaction(pooled: Settings) -> None:
    database = await opened(pooled, has_prepared_statements=False)
    async with database.transaction() as tx:
        day = await partitions.today(tx) - partitions.timedelta(days=40)
        await partitions.make(tx, DailyTable.REQUESTS, first_day=day, last_day=day)

    await partitions.remove_old(database, DailyTable.REQUESTS, days_kept=30)

    async with database.transaction() as tx:
        assert await partitions.older_than(tx, DailyTable.REQUESTS, day) == []
        timeouts = await tx.fetch_value("SELECT current_setting('lock_timeout')")
    await database.close()
    assert timeouts == "0"


async def test_prepared_statements_are_found_to_be_lost(pooled: Settings) -> None:
    first = await opened(pooled, has_prepared_statements=False)
    second = await opened(pooled, has_prepared_statements=False)
    assert await examine(first, second) is PoolingMode.TRANSACTION
    await first.close()

    preparing = await opened(pooled, has_prepared_statements=True)
    with pytest.raises(StatementsNotKept):
        await examine(preparing, second)
    for database in (preparing, second):
        await database.close()
