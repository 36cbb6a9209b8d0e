"""A revision after this one: expanded, killed on the way, contracted, and equal to a new schema."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from tests.storage.catalogs import catalog_of, taken_away
from tests.support import databases
from tests.support.gateway import settings_for
from tests.support.processes import as_toml
from tests.upgrades.releases import NEXT, WORKING_TREE, Release, next_release
from tollhouse.app import connect
from tollhouse.base.ids import InstanceId, time_ordered_uuid
from tollhouse.settings import Settings
from tollhouse.storage import instances, migrate, revisions
from tollhouse.storage.database import Database
from tollhouse.storage.errors import EarlierHistory, SchemaMismatch

KILLED = """
import asyncio, os, signal, sys
from tollhouse.storage import migrate

def show(progress):
    if progress.name == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(getattr(migrate, sys.argv[1])(sys.argv[2], show=show))
"""
IMPATIENT = """
import asyncio, sys
from tollhouse.storage import migrate

asyncio.run(migrate.migrate(sys.argv[1], attempts=2))
"""


@pytest.fixture(scope="module")
def coming(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return next_release(tmp_path_factory.mktemp("next"))


@pytest.fixture
def configuration(settings: Settings, tmp_path: Path) -> Path:
    return written(tmp_path / "tollhouse.toml", settings)


def written(path: Path, settings: Settings) -> Path:
    path.write_text(as_toml(settings), encoding="utf-8")
    return path


@pytest.fixture
async def empty_url() -> AsyncIterator[str]:
    async with databases.temporary() as url:
        yield url


async def execute(url: str, sql: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(sql)
    await connection.close()


async def register(database: Database, worker: InstanceId) -> None:
    """Record a heartbeat of a worker of the working tree."""
    async with database.transaction() as tx:
        await instances.heartbeat(tx, worker)


async def killed(release: Release, step: str, url: str, text: str) -> int | None:
    """Run a step that dies before a text; return how its process ended."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", KILLED, step, url, text), env=release.environment
    )
    return await process.wait()


async def test_an_expansion_leaves_the_older_release_whole_and_a_contraction_ends_it(
    coming: Release, configuration: Path, database_url: str, settings: Settings
) -> None:
    before = await catalog_of(database_url)
    database = await connect(settings)
    worker = InstanceId(time_ordered_uuid())

    expanded = await coming.json(configuration, "migrate")
    checked = await coming.json(configuration, "migrate", "--check")
    unknown = await WORKING_TREE.json(configuration, "migrate")
    await register(database, worker)
    refused = await coming.run(configuration, "migrate", "--contract", "--json")

    assert expanded["applied"] == [NEXT]
    assert (expanded["revision"], expanded["contracted"]) == (NEXT, revisions.head())
    assert (checked["pending"], checked["contract_pending"]) == (False, True)
    assert unknown["applied"] == []
    assert taken_away(before, await catalog_of(database_url)) == []
    assert refused.exit_code == 1
    assert "1 live worker of an older release" in refused.stderr

    async with database.transaction() as tx:
        await instances.leave(tx, worker)
    contracted = await coming.json(configuration, "migrate", "--contract")

    assert contracted["contracted"] == NEXT
    with pytest.raises(SchemaMismatch, match=f"{NEXT}, which is newer"):
        await register(database, worker)
    await database.close()
    with pytest.raises(SchemaMismatch, match=f"{NEXT}, which is newer"):
        await migrate.migrate(database_url)


async def test_a_new_database_and_an_upgraded_one_have_the_same_schema(
    coming: Release, configuration: Path, database_url: str, empty_url: str
) -> None:
    await coming.json(configuration, "migrate")
    await coming.json(configuration, "migrate", "--contract")
    upgraded = await catalog_of(database_url)
    written(configuration, settings_for(empty_url))

    made = await coming.json(configuration, "migrate")

    assert made["applied"] == [*revisions.known(), NEXT]
    assert await catalog_of(empty_url) == upgraded


@pytest.mark.parametrize(
    "text", [f"{NEXT}_expand", "admission", "rehearsal"], ids=["revision", "function", "new"]
)
async def test_a_killed_expansion_changes_nothing_and_begins_again(
    coming: Release, configuration: Path, database_url: str, text: str
) -> None:
    before = await catalog_of(database_url)

    assert await killed(coming, "migrate", database_url, text) == -signal.SIGKILL

    assert await catalog_of(database_url) == before
    assert (await coming.json(configuration, "migrate"))["applied"] == [NEXT]


async def test_a_killed_contraction_changes_nothing_and_begins_again(
    coming: Release, configuration: Path, database_url: str
) -> None:
    await coming.json(configuration, "migrate")
    before = await catalog_of(database_url)

    assert await killed(coming, "contract", database_url, f"{NEXT}_contract") == -signal.SIGKILL

    assert await catalog_of(database_url) == before
    contracted = await coming.json(configuration, "migrate", "--contract")
    assert contracted["applied"] == [NEXT]


async def test_a_text_that_changed_after_it_was_applied_is_refused(
    coming: Release, configuration: Path, database_url: str
) -> None:
    await execute(database_url, "UPDATE schema_texts SET digest = '' WHERE name = 'windows.sql'")
    before = await catalog_of(database_url)

    with pytest.raises(SchemaMismatch, match=r"other texts .*: windows\.sql\. Nothing was changed"):
        await migrate.migrate(database_url)

    assert await catalog_of(database_url) == before
    await coming.json(configuration, "migrate")
    await execute(database_url, "UPDATE schema_texts SET digest = '' WHERE name ~ '_contract'")
    refused = await coming.run(configuration, "migrate", "--contract", "--json")
    assert refused.exit_code == 1
    assert f"{NEXT}_contract.sql" in refused.stderr


async def test_a_database_of_the_earlier_history_is_refused_and_not_touched(
    configuration: Path, empty_url: str
) -> None:
    await execute(
        empty_url,
        """
        CREATE TABLE alembic_version (version_num text PRIMARY KEY);
        INSERT INTO alembic_version VALUES ('0016');
        CREATE TABLE organizations (id uuid PRIMARY KEY);
        """,
    )
    before = await catalog_of(empty_url)
    written(configuration, settings_for(empty_url))

    for step in (migrate.migrate, migrate.contract):
        with pytest.raises(EarlierHistory, match=r"made by Tollhouse 0\.2\.0 or earlier"):
            await step(empty_url)
    for arguments in (("migrate", "--check"), ("migrate",), ("org", "list"), ("serve",)):
        refused = await WORKING_TREE.run(configuration, *arguments)
        assert refused.exit_code == 1
        assert "give this version an empty database" in refused.stderr

    assert await catalog_of(empty_url) == before


async def test_a_table_that_stays_locked_ends_the_migration(
    coming: Release, configuration: Path, database_url: str
) -> None:
    holder = await asyncpg.connect(database_url)
    transaction = holder.transaction()
    await transaction.start()
    await holder.execute("LOCK TABLE projects IN ACCESS SHARE MODE")

    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", IMPATIENT, database_url),
        env=coming.environment,
        stderr=asyncio.subprocess.PIPE,
    )
    _, stderr = await process.communicate()

    assert "at each of 2 attempts. Nothing was changed" in stderr.decode()
    await transaction.rollback()
    await holder.close()
    assert (await coming.json(configuration, "migrate"))["applied"] == [NEXT]
