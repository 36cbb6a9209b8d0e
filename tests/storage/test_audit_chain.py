"""Every audit row is chained to the one before, whichever release wrote it, without deadlock."""

import asyncio
from datetime import UTC, datetime
from uuid import UUID

import pytest

from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tollhouse.app import connect
from tollhouse.base.ids import OrganizationId, ProjectId, time_ordered_uuid
from tollhouse.projects import service as projects
from tollhouse.settings import Settings
from tollhouse.storage import audit_chain
from tollhouse.storage.audit_chain import VerifiedChain
from tollhouse.storage.database import Database, Transaction

CHANGES = 200
ORGANIZATION = OrganizationId(UUID(int=1))
# The statement of release 0.2.0.
INSERT = """
    INSERT INTO audit_log (organization_id, id, occurred_at, actor_type, actor_id, action,
                           resource_type, resource_id, changes, digest_before, digest_after,
                           request_id)
    VALUES ($1, $2, now(), 'operator', NULL, 'project.create', 'project', 'p', '[]', NULL, NULL,
            NULL)
"""


async def _verified(database: Database, organization_id: OrganizationId) -> VerifiedChain:
    async with database.snapshot() as tx:
        return await audit_chain.verify(tx, organization_id, stored=None)


async def _rows(database: Database, organization_id: OrganizationId) -> int:
    async with database.transaction() as tx:
        return await tx.fetch_value(
            "SELECT count(*) FROM audit_log WHERE organization_id = $1", organization_id
        )


async def _insert(tx: Transaction, organization_id: OrganizationId = ORGANIZATION) -> None:
    await tx.execute(INSERT, organization_id, time_ordered_uuid())


@pytest.mark.guarantee("T40")
async def test_concurrent_changes_of_one_organization_leave_one_chain_without_gap(
    org: OrganizationFixture,
) -> None:
    await asyncio.gather(*(org.project(f"project {number}") for number in range(CHANGES)))

    chain = await _verified(org.database, org.organization_id)

    assert chain.fault is None
    assert chain.head.number == await _rows(org.database, org.organization_id) == CHANGES + 1


@pytest.mark.guarantee("T40")
async def test_concurrent_changes_across_organizations_leave_a_chain_in_each(
    database: Database,
) -> None:
    """Also if the first changes of an organization come at once."""
    fixtures = [await new_organization_fixture(database) for _ in range(10)]
    others = [OrganizationId(time_ordered_uuid()) for _ in range(10)]

    async def begin(organization_id: OrganizationId) -> None:
        async with database.transaction() as tx:
            await _insert(tx, organization_id)
            await _insert(tx, organization_id)

    await asyncio.gather(
        *(org.project() for org in fixtures for _ in range(CHANGES // 20)),
        *(begin(other) for other in others for _ in range(CHANGES // 20)),
    )

    for organization_id, rows in (
        *((org.organization_id, CHANGES // 20 + 1) for org in fixtures),
        *((other, CHANGES // 20 * 2) for other in others),
    ):
        chain = await _verified(database, organization_id)
        assert (chain.fault, chain.head.number) == (None, rows)


@pytest.mark.guarantee("T40")
async def test_a_change_that_locks_after_its_audit_row_does_not_deadlock(
    org: OrganizationFixture, settings: Settings
) -> None:
    """It waits for a row that another change holds, which writes its audit row then."""
    first, second = await org.project("first"), await org.project("second")
    is_locked, is_waiting = asyncio.Event(), asyncio.Event()
    watching = await connect(settings)

    async def edit_both() -> None:
        async with org.database.mutations(org.authority()) as changes:
            async with changes.one() as tx:
                await projects.edit(tx, first.id, name="changed")
            await is_locked.wait()
            is_waiting.set()
            async with changes.one() as tx:
                await projects.edit(tx, second.id, name="changed")

    async def edit_one() -> None:
        async with org.database.mutation(org.authority()) as tx:
            await tx.execute("SELECT 1 FROM projects WHERE id = $1 FOR UPDATE", second.id)
            is_locked.set()
            await is_waiting.wait()
            await _wait_for_a_blocked_session(watching)
            await projects.edit(tx, second.id, name="edited")

    await asyncio.gather(edit_both(), edit_one())
    await watching.close()

    assert (await _verified(org.database, org.organization_id)).fault is None


async def _wait_for_a_blocked_session(database: Database) -> None:
    while not await database.fetch_all(
        """
        SELECT 1
          FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'
        """
    ):
        pass


@pytest.mark.guarantee("T40")
async def test_an_aborted_change_takes_no_number(org: OrganizationFixture) -> None:
    async def abort() -> None:
        async with org.database.mutation(org.authority()) as tx:
            await projects.create(tx, project_id=ProjectId(time_ordered_uuid()), name="a")
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await abort()
    await org.project()

    chain = await _verified(org.database, org.organization_id)
    assert (chain.fault, chain.head.number) == (None, 2)


@pytest.mark.guarantee("T40")
async def test_the_trigger_and_the_verification_hash_alike(database: Database) -> None:
    """Texts of all kinds, times before 1970, and what is NULL or empty."""
    async with database.transaction() as tx:
        for actor, at in (
            ("", datetime(1901, 2, 3, 4, 5, 6, 789, tzinfo=UTC)),
            ("ü 😀 \\ ' \n", datetime(2999, 12, 31, tzinfo=UTC)),
            (None, datetime(1970, 1, 1, tzinfo=UTC)),
        ):
            await tx.execute(
                """
                INSERT INTO audit_log
                VALUES ($1, $2, $3, 'person', $4, '', '', $5, $6, '', $7, $8, $4)
                """,
                ORGANIZATION,
                time_ordered_uuid(),
                at,
                actor,
                "x" * 70_000,
                '[{"b": 1.50, "a": ["ü", null, 1e3]}, "\\u20ac"]',
                bytes(range(256)),
                UUID(int=7),
            )

    chain = await _verified(database, ORGANIZATION)
    assert (chain.fault, chain.head.number) == (None, 3)
