"""Expand steps leave everything that the previous release uses; contract steps need its end."""

import asyncpg
import pytest

from tests.storage.catalogs import catalog_of, read_catalog, taken_away
from tests.support import databases
from tollhouse.base.ids import InstanceId, time_ordered_uuid
from tollhouse.storage import instances, leases, revisions, schema
from tollhouse.storage.database import Database
from tollhouse.storage.errors import OlderWorkers, SchemaLocked, SchemaMismatch
from tollhouse.storage.leases import LeasedJob

PREVIOUS_RELEASE = "0016"


async def execute(url: str, sql: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(sql)
    await connection.close()


async def connected(url: str) -> Database:
    return await Database.connect(url, pool_size=1, acquire_seconds=10, statement_seconds=10)


async def state_of(url: str) -> revisions.SchemaState:
    database = await connected(url)
    try:
        return await revisions.current(database)
    finally:
        await database.close()


async def test_expand_steps_take_nothing_from_the_previous_release() -> None:
    async with databases.temporary() as url:
        await schema.migrate(url, to=PREVIOUS_RELEASE)
        before = await catalog_of(url)

        await schema.migrate(url)

        assert taken_away(before, await catalog_of(url)) == []


FORBIDDEN = {
    "DROP TABLE rate_limits": "table rate_limits is gone",
    "ALTER TABLE rate_limits RENAME TO limits": "table rate_limits is gone",
    "ALTER TABLE requests DROP COLUMN error_param": "column requests.error_param is gone",
    "ALTER TABLE requests RENAME COLUMN error_param TO p": "column requests.error_param is gone",
    "ALTER TABLE job_leases ALTER COLUMN name TYPE varchar": (
        "column job_leases.name is character varying and was text"
    ),
    "ALTER TABLE instances ALTER COLUMN master_ids DROP DEFAULT": (
        "column instances.master_ids has no default any more"
    ),
    "ALTER TABLE instances ADD COLUMN host text NOT NULL": (
        "column instances.host is new, required and without default"
    ),
    "ALTER TABLE requests ALTER COLUMN error_param SET NOT NULL": (
        "column requests.error_param is required now"
    ),
    "ALTER TYPE request_record ADD ATTRIBUTE cell text": (
        "type request_record is gone or has other members"
    ),
    "DROP INDEX requests_of_error": (
        "index requests btree (organization_id, error_code, day, request_id) "
        "WHERE (error_code IS NOT NULL) is gone"
    ),
    "CREATE UNIQUE INDEX ON instances (started_at)": (
        "index instances btree (started_at) UNIQUE is new and unique"
    ),
    "ALTER TABLE instances ADD CONSTRAINT recent CHECK (started_at > '2020-01-01')": (
        "constraint instances.recent is new"
    ),
}


async def test_what_an_expand_step_must_not_do_is_found(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    before = await read_catalog(connection)

    for statement, finding in FORBIDDEN.items():
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(statement)
        assert finding in taken_away(before, await read_catalog(connection))
        await transaction.rollback()
    await connection.close()


async def test_what_an_expand_step_may_do_is_not_found(database_url: str) -> None:
    before = await catalog_of(database_url)

    await execute(
        database_url,
        """
        CREATE TABLE cells (name text PRIMARY KEY, CHECK (name <> ''));
        ALTER TABLE instances ADD COLUMN cell text, ADD COLUMN load int NOT NULL DEFAULT 0;
        CREATE INDEX ON instances (cell);
        ALTER TABLE requests ALTER COLUMN status DROP NOT NULL;
        CREATE FUNCTION cell_of(uuid) RETURNS text LANGUAGE sql AS 'SELECT NULL';
        """,
    )

    assert taken_away(before, await catalog_of(database_url)) == []


async def test_a_new_database_and_an_upgraded_one_have_the_same_schema(database_url: str) -> None:
    async with databases.temporary() as url:
        await schema.migrate(url, to=PREVIOUS_RELEASE)
        await schema.migrate(url)
        contracted = await schema.contract(url)

        assert contracted == [name for name in revisions.known() if name > PREVIOUS_RELEASE]
        assert await catalog_of(url) == await catalog_of(database_url)
        assert await schema.contract(url) == []
        assert await state_of(url) == revisions.SchemaState(
            contracted=revisions.head(), expanded=frozenset()
        )


async def test_the_version_that_the_previous_release_reads_stays_until_the_contract() -> None:
    async with databases.temporary() as url:
        await schema.migrate(url, to=PREVIOUS_RELEASE)

        applied = await schema.migrate(url)

        found = await state_of(url)
        assert found.contracted == PREVIOUS_RELEASE
        assert found.expanded == frozenset(applied)
        assert await schema.migrate(url) == []


async def test_a_contract_step_waits_until_no_older_worker_lives(database_url: str) -> None:
    async with databases.temporary() as url:
        await schema.migrate(url, to=PREVIOUS_RELEASE)
        database = await connected(url)
        worker = InstanceId(time_ordered_uuid())
        # The schema has no column for the revision yet, as with a worker of 0.2.0.
        async with database.transaction() as tx:
            await instances.heartbeat(tx, worker, pepper_versions=[1])
        await schema.migrate(url)

        with pytest.raises(OlderWorkers, match="1 live worker of an older release"):
            await schema.contract(url)
        assert (await state_of(url)).contracted == PREVIOUS_RELEASE

        # The next heartbeat records what this version knows.
        async with database.transaction() as tx:
            await instances.heartbeat(tx, worker, pepper_versions=[1])
        await database.close()
        assert await schema.contract(url)


async def test_a_worker_that_the_schema_was_contracted_past_records_no_heartbeat(
    database: Database, database_url: str
) -> None:
    await execute(database_url, "UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(SchemaMismatch, match="9999, which is newer"):
        async with database.transaction() as tx:
            await instances.heartbeat(tx, InstanceId(time_ordered_uuid()), pepper_versions=[1])


async def test_revisions_of_a_newer_release_are_left_alone(database_url: str) -> None:
    await execute(database_url, "INSERT INTO schema_expansions (revision) VALUES ('9999')")

    assert await schema.migrate(database_url) == []
    assert await schema.contract(database_url) == []
    assert (await state_of(database_url)).newest == "9999"


async def test_a_schema_before_the_accepted_range_is_refused() -> None:
    async with databases.temporary() as url:
        await schema.migrate(url, to="0015")
        database = await connected(url)

        message = rf"revision 0015, .* accepts 0016 to {revisions.head()}\. Run `tollhouse migrate`"
        with pytest.raises(SchemaMismatch, match=message):
            await revisions.refuse_other_schema(database)
        with pytest.raises(SchemaMismatch, match="this needs 0017"):
            await revisions.require(database, "0017")
        await database.close()


async def test_a_table_that_stays_locked_ends_the_migration() -> None:
    async with databases.temporary() as url:
        await schema.migrate(url, to=PREVIOUS_RELEASE)
        holder = await asyncpg.connect(url)
        transaction = holder.transaction()
        await transaction.start()
        await holder.execute("LOCK TABLE instances IN ACCESS SHARE MODE")

        with pytest.raises(SchemaLocked, match=r"at each of 2 attempts\. Nothing was changed"):
            await schema.migrate(url, attempts=2)
        await transaction.rollback()
        await holder.close()

        assert await schema.migrate(url)


async def test_a_job_waits_for_its_revision(database: Database, database_url: str) -> None:
    runs: list[str] = []

    async def run() -> None:
        runs.append("ran")

    job = LeasedJob(name="later", every_seconds=60, run=run, needs_revision="9998")
    holder = InstanceId(time_ordered_uuid())

    await leases.run_once(database, job, holder)
    assert runs == []
    await execute(database_url, "INSERT INTO schema_expansions (revision) VALUES ('9998')")
    await leases.run_once(database, job, holder)
    assert runs == ["ran"]
