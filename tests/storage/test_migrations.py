"""Migrations: all of it or nothing, once, and no server on any other schema."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import asyncpg
import msgspec
import pytest
from sqlalchemy.exc import ProgrammingError

from tests.storage.processes import NEVER, migrate_in_forks, next_word, running
from tests.support import databases, seeds
from tests.support.gateway import settings_for
from tollhouse.app import Application
from tollhouse.settings import Settings
from tollhouse.storage import revisions, schema
from tollhouse.storage.errors import DatabaseUnavailable, SchemaMismatch
from tollhouse.storage.schema import Progress

OLDER_KILLS = int(os.environ.get("TOLLHOUSE_MIGRATION_KILLS", "12"))
TRIED_AGAIN_EVERY = 10
"""After how many kills the whole is migrated once more: nothing that a kill leaves could differ."""
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


async def test_progress_is_told_before_every_statement(empty_url: str) -> None:
    shown: list[Progress] = []

    applied = await schema.migrate(empty_url, show=shown.append)

    assert applied == sorted({progress.revision for progress in shown})
    assert applied[-1] == revisions.head()
    for revision in applied:
        numbers = [told.statement_number for told in shown if told.revision == revision]
        counts = {told.statement_count for told in shown if told.revision == revision}
        assert numbers == list(range(1, len(numbers) + 1))
        assert counts == {len(numbers)}


async def test_a_second_migration_has_nothing_to_do(empty_url: str) -> None:
    await schema.migrate(empty_url)
    before = await what_exists(empty_url)

    assert await schema.migrate(empty_url) == []
    assert await what_exists(empty_url) == before


@pytest.mark.nightly
async def test_a_migration_killed_at_any_statement_leaves_the_old_schema(empty_url: str) -> None:
    shown: list[Progress] = []
    applied = await schema.migrate(empty_url, show=shown.append)
    whole = await what_exists(empty_url)
    await empty(empty_url)
    assert len(shown) > 10

    async with running(migrate_in_forks, empty_url) as (_, line):
        for turn, number in enumerate(killed := killed_statements(shown)):
            line.send([number])
            assert await next_word(line) == [-signal.SIGKILL]
            assert await what_exists(empty_url) == []

            if turn % TRIED_AGAIN_EVERY == 0 or number == killed[-1]:
                assert await schema.migrate(empty_url) == applied
                assert await what_exists(empty_url) == whole
                await empty(empty_url)


def killed_statements(shown: list[Progress]) -> list[int]:
    """Every statement of the newest revision, and a few of the older ones, chosen by the seed."""
    numbered = list(enumerate(shown, 1))
    newest = [number for number, each in numbered if each.revision == revisions.head()]
    older = [number for number, each in numbered if each.revision != revisions.head()]
    assert newest
    return sorted([*seeds.chance("killed").sample(older, min(OLDER_KILLS, len(older))), *newest])


async def test_of_two_migrations_at_once_one_applies_and_the_other_finds_nothing_to_do(
    empty_url: str,
) -> None:
    async with running(migrate_in_forks, empty_url) as (_, line):
        line.send([NEVER, NEVER])
        first, second = msgspec.convert(await next_word(line), tuple[int, int])

    assert min(first, second) == 0
    assert max(first, second) > 0
    assert await schema.migrate(empty_url) == []


async def test_a_migration_waits_for_one_that_is_under_way(empty_url: str) -> None:
    holder = await asyncpg.connect(empty_url)
    transaction = holder.transaction()
    await transaction.start()
    await holder.execute("SELECT pg_advisory_xact_lock($1)", schema.MIGRATION_LOCK)

    migrating = asyncio.create_task(schema.migrate(empty_url))
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


async def test_a_statement_that_fails_leaves_the_old_schema(empty_url: str) -> None:
    await execute(empty_url, "CREATE TABLE instances (ours boolean)")

    with pytest.raises(ProgrammingError, match='"instances" already exists'):
        await schema.migrate(empty_url)

    assert await what_exists(empty_url) == ["instances"]

    await execute(empty_url, "DROP TABLE instances")
    assert (await schema.migrate(empty_url))[-1] == revisions.head()


async def test_a_database_that_cannot_be_reached_is_said_to_be_unavailable() -> None:
    with pytest.raises(DatabaseUnavailable):
        await schema.migrate("postgresql://root@127.0.0.1:1/none")


async def test_a_database_of_a_newer_version_is_not_touched(database_url: str) -> None:
    await execute(database_url, "UPDATE alembic_version SET version_num = '9999'")
    before = await what_exists(database_url)

    with pytest.raises(SchemaMismatch, match="9999, which is newer"):
        await schema.migrate(database_url)

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
    await execute(settings.database.url, "DELETE FROM alembic_version")

    with pytest.raises(SchemaMismatch, match=r"revision none.*Run `tollhouse migrate`"):
        await start_and_stop(settings)


async def test_a_server_refuses_a_schema_that_it_does_not_know(settings: Settings) -> None:
    await execute(settings.database.url, "UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(SchemaMismatch, match=r"revision 9999.*Run the version of Tollhouse that"):
        await start_and_stop(settings)


ORGANIZATION = """
    INSERT INTO organizations (id, name, status, created_at)
    VALUES (gen_random_uuid(), 'a', 'active', now())
"""


async def test_policies_from_before_early_ends_and_workers_that_do_not_know_them_get_none(
    empty_url: str,
) -> None:
    await schema.migrate(empty_url, to="0007")
    await execute(empty_url, ORGANIZATION)
    await execute(empty_url, policy_as_of_0007(1))

    await schema.migrate(empty_url)
    await execute(empty_url, policy_as_of_0007(2))

    connection = await asyncpg.connect(empty_url)
    found = await connection.fetch(
        "SELECT p.ends_answer_early, v.ends_answer_early AS published FROM policies p"
        " JOIN policy_versions v ON v.policy_id = p.id"
    )
    await connection.close()
    assert [tuple(row) for row in found] == [(False, False)] * 2


def policy_as_of_0007(number: int) -> str:
    """The statements of a worker that was written for that schema."""
    policy_id = f"00000000-0000-4000-8000-00000000000{number}"
    return f"""
        INSERT INTO policies (organization_id, id, name, description, state, revision, rule,
                              direction, mode, scope, project_ids, base_version, created_at,
                              updated_at)
        SELECT id, '{policy_id}', 'n', '', 'draft', 1, 'Is it?', 'both', 'enforcing',
               'unattached', '{{}}', 0, now(), now() FROM organizations;
        INSERT INTO policy_versions (organization_id, policy_id, version, rule, direction, mode,
                                     scope, project_ids, threshold_in_force_basis_points,
                                     published_at)
        SELECT id, '{policy_id}', 1, 'Is it?', 'both', 'enforcing', 'unattached', '{{}}', 5000,
               now() FROM organizations;
    """  # noqa: S608 - the test's own


ENTRY_AS_OF_0012 = """
    INSERT INTO ledger_entries (
        organization_id, admitted_day, reservation_id, phase, kind, admitted_at, deadline_at,
        project_id, api_key_id, model, price_revision, instance_id, bills_without_answer,
        held_pico, unknown_pico)
    SELECT id, '2026-11-01', id, 1, 'absorb', '2026-11-01 12:00+00', '2026-11-01 12:10+00',
           id, id, 'm', 1, id, false, 5, 5
      FROM organizations
"""


async def test_what_was_absorbed_is_written_off_after_an_upgrade(empty_url: str) -> None:
    await schema.migrate(empty_url, to="0012")
    await execute(
        empty_url,
        "CREATE TABLE ledger_entries_20261101 (LIKE ledger_entries INCLUDING ALL);"
        "ALTER TABLE ledger_entries ATTACH PARTITION ledger_entries_20261101"
        " FOR VALUES FROM ('2026-11-01') TO ('2026-11-02')",
    )
    await execute(empty_url, ORGANIZATION)
    await execute(empty_url, ENTRY_AS_OF_0012)
    await execute(empty_url, "UPDATE accounts SET absorbed_unknown_pico = 5")
    await execute(
        empty_url,
        "CREATE TABLE examinations_20261101 PARTITION OF examinations"
        " FOR VALUES FROM ('2026-11-01') TO ('2026-11-02')",
    )

    await schema.migrate(empty_url)

    connection = await asyncpg.connect(empty_url)
    assert await connection.fetchval("SELECT kind FROM ledger_entries") == "write_off"
    assert await connection.fetchval("SELECT written_off_unknown_pico FROM accounts") == 5
    for change in ("kind = 'post'", "kind = 'absorb'"):
        with pytest.raises(asyncpg.PostgresError, match="append-only"):
            await connection.execute(f"UPDATE ledger_entries SET {change}")  # noqa: S608 - the test's own
    with pytest.raises(asyncpg.CheckViolationError, match="entries_kind_fits_phase"):
        await connection.execute(ENTRY_AS_OF_0012.replace("1, 'absorb'", "0, 'absorb'"))
    await connection.close()
    assert not [name for name in await what_exists(empty_url) if "examin" in name]
