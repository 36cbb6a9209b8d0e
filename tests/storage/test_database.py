"""Transactions: they commit whole or not at all, and say what went wrong in our own words."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from uuid import UUID

import asyncpg
import pytest

from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.ids import ProjectId, time_ordered_uuid
from tollhouse.projects import service as projects
from tollhouse.storage import audit
from tollhouse.storage.database import Database, Mutation, Transaction, UnauditedMutation
from tollhouse.storage.errors import (
    ConstraintViolated,
    DatabaseUnavailable,
    LockTimedOut,
    StatementFailed,
)

JOB = UUID(int=7)
TIMEOUT_SECONDS = 4.0
"""What is not waited for on purpose takes less, also on a machine that stands still for a while."""


class Abandoned(Exception):
    """What ends a block early here."""


@pytest.fixture
async def small(database_url: str) -> AsyncIterator[Database]:
    """A pool of one connection and little patience."""
    opened = await Database.connect(
        database_url,
        pool_size=1,
        acquire_seconds=TIMEOUT_SECONDS,
        statement_seconds=TIMEOUT_SECONDS,
    )
    yield opened
    await opened.close()


async def write_lease(tx: Transaction, name: str = "a job") -> None:
    await tx.execute(
        "INSERT INTO job_leases (name, holder, expires_at) VALUES ($1, $2, clock_timestamp())",
        name,
        JOB,
    )


async def leases(database: Database) -> list[str]:
    rows = await database.fetch_all("SELECT name FROM job_leases ORDER BY name")
    return [row["name"] for row in rows]


async def count_projects(org: OrganizationFixture) -> int:
    async with org.database.transaction() as tx:
        return len(await projects.page(tx, org.organization_id, after=None, limit=100))


async def create_project(tx: Mutation) -> None:
    await projects.create(tx, project_id=ProjectId(time_ordered_uuid()), name="a project")


async def test_what_was_written_is_there_after_the_block(database: Database) -> None:
    async with database.transaction() as tx:
        await write_lease(tx)

    assert await leases(database) == ["a job"]


async def test_a_block_that_fails_writes_nothing(database: Database) -> None:
    async def write_and_fail() -> None:
        async with database.transaction() as tx:
            await write_lease(tx)
            raise Abandoned

    with pytest.raises(Abandoned):
        await write_and_fail()

    assert await leases(database) == []


async def test_a_block_that_is_cancelled_writes_nothing_and_gives_its_connection_back(
    small: Database,
) -> None:
    has_written = asyncio.Event()

    async def write_and_wait() -> None:
        async with small.transaction() as tx:
            await write_lease(tx)
            has_written.set()
            await asyncio.Event().wait()

    writing = asyncio.create_task(write_and_wait())
    await has_written.wait()
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)

    assert writing.cancelled()
    assert await leases(small) == []
    assert small.connections_in_use == 0


async def test_a_caller_who_leaves_while_a_block_begins_is_no_error(
    small: Database, caplog: pytest.LogCaptureFixture
) -> None:
    block = AsyncExitStack()
    beginning = asyncio.create_task(block.enter_async_context(small.transaction()))
    while not small.connections_in_use:  # noqa: ASYNC110 - a pool has no event
        await asyncio.sleep(0)
    beginning.cancel()
    await asyncio.gather(beginning, return_exceptions=True)

    assert beginning.cancelled()
    assert await leases(small) == []
    assert caplog.records == []


async def test_rows_touched_are_counted(database: Database) -> None:
    async with database.transaction() as tx:
        await write_lease(tx, "one")
        await write_lease(tx, "two")

        assert await tx.execute("UPDATE job_leases SET holder = $1", UUID(int=8)) == 2
        assert await tx.execute("DELETE FROM job_leases WHERE name = 'three'") == 0
        assert await tx.execute("SET LOCAL lock_timeout = '1s'") == 0


async def test_a_mutation_without_its_audit_row_fails_and_is_undone(
    org: OrganizationFixture,
) -> None:
    with pytest.raises(UnauditedMutation, match="0 audit rows instead of 1"):
        async with org.database.mutation(org.authority()) as tx:
            await tx.execute(
                """
                INSERT INTO projects (organization_id, id, name, created_at)
                VALUES ($1, $2, 'unseen', now())
                """,
                org.organization_id,
                time_ordered_uuid(),
            )

    assert await count_projects(org) == 0


async def test_a_mutation_with_two_audit_rows_fails_and_is_undone(org: OrganizationFixture) -> None:
    async def create_two() -> None:
        async with org.database.mutation(org.authority()) as tx:
            await create_project(tx)
            await create_project(tx)

    with pytest.raises(UnauditedMutation, match="2 audit rows instead of 1"):
        await create_two()

    assert await count_projects(org) == 0


async def test_a_mutation_that_claims_to_change_nothing_must_not_be_audited(
    org: OrganizationFixture,
) -> None:
    async def create_and_deny() -> None:
        async with org.database.mutation(org.authority()) as tx:
            await create_project(tx)
            tx.unchanged()

    with pytest.raises(UnauditedMutation, match="1 audit rows instead of 0"):
        await create_and_deny()

    assert await count_projects(org) == 0


async def test_a_mutation_that_changed_nothing_may_say_so(org: OrganizationFixture) -> None:
    async with org.database.mutation(org.authority()) as tx:
        tx.unchanged()


@pytest.mark.parametrize(
    "statement",
    ["UPDATE audit_log SET action = 'x'", "DELETE FROM audit_log", "TRUNCATE audit_log"],
)
async def test_the_audit_log_can_only_grow(
    org: OrganizationFixture, database_url: str, statement: str
) -> None:
    connection = await asyncpg.connect(database_url)
    with pytest.raises(asyncpg.RaiseError, match="audit_log is append-only"):
        await connection.execute(statement)
    await connection.close()

    async with org.database.transaction() as tx:
        entries = await audit.page(tx, org.organization_id, after=None, limit=10)
    assert [entry.action for entry in entries] == ["organization.create"]


async def test_a_violated_constraint_is_told_by_its_name(database: Database) -> None:
    async def write_twice() -> None:
        async with database.transaction() as tx:
            await write_lease(tx)
            await write_lease(tx)

    with pytest.raises(ConstraintViolated) as violated:
        await write_twice()

    assert violated.value.constraint == "job_leases_pkey"
    assert await leases(database) == []


async def test_a_lock_that_is_not_given_in_time_is_told_as_such(database: Database) -> None:
    async with database.transaction() as tx:
        await write_lease(tx)

    async def wait_a_little() -> None:
        async with database.transaction() as waiter:
            await waiter.execute("SET LOCAL lock_timeout = '50ms'")
            await waiter.execute("UPDATE job_leases SET holder = $1", UUID(int=9))

    async with database.transaction() as holder:
        await holder.execute("UPDATE job_leases SET holder = $1", UUID(int=8))
        with pytest.raises(LockTimedOut):
            await wait_a_little()


async def test_an_argument_that_does_not_fit_is_our_bug_and_no_missing_database(
    database: Database,
) -> None:
    with pytest.raises(StatementFailed) as failed:
        async with database.transaction() as tx:
            await tx.fetch_value("SELECT $1::int", 2**40)

    assert str(2**40) not in str(failed.value), "arguments do not reach the log"
    assert await leases(database) == []


@pytest.mark.guarantee("T42")
async def test_a_pool_that_is_used_up_is_an_unavailable_database_within_the_bound(
    small: Database,
) -> None:
    loop = asyncio.get_running_loop()

    async with small.transaction():
        began = loop.time()
        with pytest.raises(DatabaseUnavailable):
            async with small.transaction():
                pass
        waited_seconds = loop.time() - began

    assert 0.9 * TIMEOUT_SECONDS < waited_seconds < 4 * TIMEOUT_SECONDS
    assert await leases(small) == []


async def test_a_single_statement_waits_no_longer_for_a_connection_than_a_transaction(
    small: Database,
) -> None:
    async with small.transaction():
        with pytest.raises(DatabaseUnavailable):
            await asyncio.wait_for(leases(small), 4 * TIMEOUT_SECONDS)

    assert await leases(small) == []


async def test_a_statement_that_takes_too_long_is_an_unavailable_database(
    small: Database,
) -> None:
    with pytest.raises(DatabaseUnavailable):
        async with small.transaction() as tx:
            await tx.execute("SELECT pg_sleep(60)")

    assert await leases(small) == []


TROUBLES = {
    "disk full": "53100",
    "out of memory": "53200",
    "too many connections": "53300",
    "statement cancelled": "57014",
    "administrator's shutdown": "57P01",
    "crash": "57P02",
    "starting up": "57P03",
    "input or output failed": "58030",
    "deadlock": "40P01",
    "serialization failed": "40001",
}


async def test_a_database_in_trouble_is_an_unavailable_database(database: Database) -> None:
    told: dict[str, str] = {}
    for trouble, code in TROUBLES.items():
        try:
            async with database.transaction() as tx:
                await tx.execute("SELECT set_config('test.code', $1, true)", code)
                await tx.execute(
                    """
                    DO $$ BEGIN
                        RAISE EXCEPTION USING ERRCODE = current_setting('test.code');
                    END $$
                    """
                )
        except (DatabaseUnavailable, asyncpg.PostgresError) as failure:
            told[trouble] = type(failure).__name__

    assert told == dict.fromkeys(TROUBLES, "DatabaseUnavailable")


async def test_a_database_that_takes_no_writes_is_an_unavailable_database(
    database: Database,
) -> None:
    async def write_where_nothing_is_written() -> None:
        async with database.transaction() as tx:
            await tx.execute("SET TRANSACTION READ ONLY")
            await write_lease(tx)

    with pytest.raises(DatabaseUnavailable):
        await write_where_nothing_is_written()


async def test_connections_in_use_are_counted(database: Database) -> None:
    assert database.connections_in_use == 0

    async with database.transaction(), database.transaction():
        assert database.connections_in_use == 2

    assert database.connections_in_use == 0


async def test_a_snapshot_sees_one_instant_and_writes_nothing(database: Database) -> None:
    async with database.snapshot() as seen:
        assert await seen.fetch_value("SELECT count(*) FROM job_leases") == 0
        async with database.transaction() as tx:
            await write_lease(tx)
        assert await seen.fetch_value("SELECT count(*) FROM job_leases") == 0

    with pytest.raises(DatabaseUnavailable):
        async with database.snapshot() as seen:
            await write_lease(seen, "another job")
    assert await leases(database) == ["a job"]


async def test_a_statement_outside_of_transactions_gives_up_on_a_lock_and_leaves_no_trace(
    small: Database, database: Database
) -> None:
    async with database.transaction() as tx:
        await tx.execute("LOCK TABLE job_leases IN ACCESS SHARE MODE")
        with pytest.raises(LockTimedOut):
            await small.run_outside("TRUNCATE job_leases", seconds=1)

    await small.run_outside("VACUUM job_leases", seconds=10)
    rows = await small.fetch_all("SELECT current_setting('lock_timeout') AS value")
    assert rows[0]["value"] == "0"


async def test_a_share_never_uses_more_connections_than_it_may(database_url: str) -> None:
    pool = await Database.connect(
        database_url,
        pool_size=3,
        acquire_seconds=TIMEOUT_SECONDS,
        statement_seconds=TIMEOUT_SECONDS,
    )
    share = pool.share(connections_max=1)
    async with share.transaction():
        waiting = asyncio.ensure_future(share.fetch_all("SELECT 1 AS one"))
        async with pool.transaction() as first, pool.transaction() as second:
            assert await first.fetch_value("SELECT 1") == await second.fetch_value("SELECT 1")
        assert not waiting.done()

    assert [row["one"] for row in await waiting] == [1]
    await pool.close()


async def test_a_share_gives_its_permit_back_when_something_fails(small: Database) -> None:
    share = small.share(connections_max=1)
    for _ in range(3):
        with pytest.raises(StatementFailed):
            await share.fetch_all("SELECT nothing")
        with pytest.raises(Abandoned):
            async with share.transaction():
                raise Abandoned

    assert len(await share.fetch_all("SELECT 1")) == 1


async def test_waiting_for_a_share_has_an_end(database_url: str) -> None:
    pool = await Database.connect(
        database_url, pool_size=2, acquire_seconds=0.1, statement_seconds=TIMEOUT_SECONDS
    )
    share = pool.share(connections_max=1)
    async with share.transaction():
        with pytest.raises(DatabaseUnavailable):
            await share.fetch_all("SELECT 1")

    assert len(await share.fetch_all("SELECT 1")) == 1
    await pool.close()


async def test_a_share_may_give_statements_less_time(small: Database) -> None:
    share = small.share(connections_max=1, statement_seconds=0.05)

    with pytest.raises(DatabaseUnavailable):
        await share.fetch_all("SELECT pg_sleep(60)")
    async with share.transaction() as tx:
        with pytest.raises(DatabaseUnavailable):
            await tx.fetch_value("SELECT pg_sleep(60)")
