"""Migrations: all of it or nothing, once, and no server on any other schema."""

import asyncio
import signal
from collections.abc import AsyncIterator

import asyncpg
import msgspec
import pytest

from tests.storage.processes import NEVER, migrate_in_forks, next_word, running
from tests.support import databases
from tests.support.gateway import settings_for
from tollhouse.app import Application
from tollhouse.settings import Settings
from tollhouse.storage import migrate, revisions
from tollhouse.storage.errors import DatabaseUnavailable, MigrationFailed, SchemaMismatch
from tollhouse.storage.migrate import Progress

WHAT_EXISTS = """
    SELECT relname::text AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT proname::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    ORDER BY name
"""


@pytest.fixture
async def empty_url() -> AsyncIterator[str]:
    """A database that was never migrated."""
    async with databases.temporary() as url:
        yield url


async def execute(url: str, sql: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(sql)
    await connection.close()


async def what_exists(url: str) -> list[str]:
    """Every table, index, sequence and function of ours."""
    connection = await asyncpg.connect(url)
    rows = await connection.fetch(WHAT_EXISTS)
    await connection.close()
    return [row["name"] for row in rows]


async def empty(url: str) -> None:
    await execute(url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")


async def test_progress_is_told_before_every_text(empty_url: str) -> None:
    shown: list[Progress] = []

    applied = await migrate.migrate(empty_url, show=shown.append)

    assert applied == list(revisions.known())
    assert [told.number for told in shown] == list(range(1, len(shown) + 1))
    assert {told.total for told in shown} == {len(shown)}
    assert {"05_ledger", "settlement", "triggers"} <= {told.name for told in shown}


async def test_a_second_migration_has_nothing_to_do(empty_url: str) -> None:
    await migrate.migrate(empty_url)
    before = await what_exists(empty_url)

    assert await migrate.migrate(empty_url) == []
    assert await what_exists(empty_url) == before


@pytest.mark.nightly
async def test_a_migration_killed_before_any_text_leaves_the_old_schema(empty_url: str) -> None:
    shown: list[Progress] = []
    applied = await migrate.migrate(empty_url, show=shown.append)
    whole = await what_exists(empty_url)
    await empty(empty_url)
    assert len(shown) > 10

    async with running(migrate_in_forks, empty_url) as (_, line):
        for told in shown:
            line.send([told.number])
            assert await next_word(line) == [-signal.SIGKILL]
            assert await what_exists(empty_url) == []
    assert await migrate.migrate(empty_url) == applied
    assert await what_exists(empty_url) == whole


async def test_of_two_migrations_at_once_one_applies_and_the_other_finds_nothing_to_do(
    empty_url: str,
) -> None:
    async with running(migrate_in_forks, empty_url) as (_, line):
        line.send([NEVER, NEVER])
        first, second = msgspec.convert(await next_word(line), tuple[int, int])

    assert min(first, second) == 0
    assert max(first, second) > 0
    assert await migrate.migrate(empty_url) == []


async def test_a_migration_waits_for_one_that_is_under_way(empty_url: str) -> None:
    holder = await asyncpg.connect(empty_url)
    transaction = holder.transaction()
    await transaction.start()
    await holder.execute("SELECT pg_advisory_xact_lock($1)", migrate.MIGRATION_LOCK)

    migrating = asyncio.create_task(migrate.migrate(empty_url))
    await until_somebody_waits(holder)
    before = await what_exists(empty_url)
    await transaction.rollback()
    await holder.close()

    assert before == []
    assert (await migrating)[-1] == revisions.head()


async def until_somebody_waits(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """The lock is asked for and not granted, which the server shows and does not announce."""
    waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    while await connection.fetchval(waiting) is None:
        await connection.execute("SELECT pg_sleep(0.01)")


async def test_a_text_that_fails_leaves_the_old_schema(empty_url: str) -> None:
    await execute(empty_url, "CREATE TABLE instances (ours boolean)")

    with pytest.raises(MigrationFailed, match=r'09_workers\.sql: .*"instances" already exists'):
        await migrate.migrate(empty_url)

    assert await what_exists(empty_url) == ["instances"]

    await execute(empty_url, "DROP TABLE instances")
    assert (await migrate.migrate(empty_url))[-1] == revisions.head()


async def test_a_database_that_cannot_be_reached_is_said_to_be_unavailable() -> None:
    with pytest.raises(DatabaseUnavailable):
        await migrate.migrate("postgresql://root@127.0.0.1:1/none")


async def test_a_database_of_a_newer_version_is_not_touched(database_url: str) -> None:
    await execute(database_url, "UPDATE schema_contracted SET version_num = '9999'")
    before = await what_exists(database_url)

    with pytest.raises(SchemaMismatch, match="9999, which is newer"):
        await migrate.migrate(database_url)

    assert await what_exists(database_url) == before


async def start_and_stop(settings: Settings) -> None:
    application = Application(settings)
    await application.startup()
    await application.shutdown()


async def test_a_server_starts_on_its_own_schema(settings: Settings) -> None:
    await start_and_stop(settings)


async def test_a_server_refuses_a_database_that_was_never_migrated(empty_url: str) -> None:
    with pytest.raises(SchemaMismatch, match=r"revision none.*Run `tollhouse migrate`"):
        await start_and_stop(settings_for(empty_url))


async def test_a_server_refuses_a_database_whose_migration_was_undone(
    settings: Settings,
) -> None:
    await execute(settings.database.url, "DELETE FROM schema_expanded")

    with pytest.raises(SchemaMismatch, match=r"revision none.*Run `tollhouse migrate`"):
        await start_and_stop(settings)


async def test_a_server_refuses_a_schema_that_it_does_not_know(settings: Settings) -> None:
    await execute(settings.database.url, "UPDATE schema_contracted SET version_num = '9999'")

    with pytest.raises(SchemaMismatch, match=r"revision 9999.*Run the version of Tollhouse that"):
        await start_and_stop(settings)
