"""Nobody can alter the audit log, and nothing commits without its row."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg
import pytest

from tests.identity.audit_rows import audit_rows
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.ids import ProjectId
from tollhouse.projects import service as projects
from tollhouse.storage.database import UnauditedMutation

pytestmark = pytest.mark.asyncio(loop_scope="module")

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.guarantee("T40")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_log SET action = 'nothing'",
        "UPDATE audit_log SET action = 'nothing' WHERE false",
        "DELETE FROM audit_log",
        "TRUNCATE audit_log",
    ],
)
async def test_the_audit_log_refuses_every_change(
    org: OrganizationFixture, database_url: str, statement: str
) -> None:
    before = await audit_rows(org)
    connection = await asyncpg.connect(database_url)
    try:
        with pytest.raises(asyncpg.RaiseError, match="audit_log is append-only"):
            await connection.execute(statement)
    finally:
        await connection.close()

    assert before
    assert await audit_rows(org) == before


async def _name_of(org: OrganizationFixture, project_id: ProjectId) -> str:
    async with org.database.transaction() as tx:
        return await tx.fetch_value("SELECT name FROM projects WHERE id = $1", project_id)


async def _forget(org: OrganizationFixture, project_id: ProjectId) -> None:
    async with org.database.mutation(org.authority()) as tx:
        await tx.execute("UPDATE projects SET name = 'silent' WHERE id = $1", project_id)


async def _rename_twice(org: OrganizationFixture, project_id: ProjectId) -> None:
    async with org.database.mutation(org.authority()) as tx:
        await projects.edit(tx, project_id, name="one")
        await projects.edit(tx, project_id, name="two")


async def _deny_a_change(org: OrganizationFixture, project_id: ProjectId) -> None:
    async with org.database.mutation(org.authority()) as tx:
        tx.unchanged()
        await projects.edit(tx, project_id, name="one")


@pytest.mark.guarantee("T40")
@pytest.mark.parametrize(
    ("mutate", "message"),
    [
        (_forget, "0 audit rows instead of 1"),
        (_rename_twice, "2 audit rows instead of 1"),
        (_deny_a_change, "1 audit rows instead of 0"),
    ],
)
async def test_a_mutation_without_exactly_its_row_does_not_commit(
    org: OrganizationFixture,
    mutate: Callable[[OrganizationFixture, ProjectId], Awaitable[None]],
    message: str,
) -> None:
    project = await org.project("search")

    with pytest.raises(UnauditedMutation, match=message):
        await mutate(org, project.id)

    assert await _name_of(org, project.id) == "search"


UNAUDITED = """
import asyncio, sys
from datetime import UTC, datetime
from uuid import UUID
from tollhouse.storage.database import OPERATOR, Authority, Database

async def main(url, organization_id, project_id):
    database = await Database.connect(
        url, pool_size=1, acquire_seconds=60.0, statement_seconds=60.0
    )
    authority = Authority(
        organization_id=UUID(organization_id),
        actor=OPERATOR,
        request_id=None,
        now=datetime.now(UTC),
    )
    async with database.mutation(authority) as tx:
        await tx.execute("UPDATE projects SET name = 'silent' WHERE id = $1", UUID(project_id))

asyncio.run(main(*sys.argv[1:]))
"""


async def test_the_guard_holds_when_python_drops_assertions(
    org: OrganizationFixture, database_url: str
) -> None:
    """`python -O` and PYTHONOPTIMIZE take every `assert` out of the program."""
    project = await org.project("search")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-O", "-c", UNAUDITED, database_url),
        *(str(org.organization_id), str(project.id)),
        env={"PYTHONPATH": str(REPOSITORY / "src")},
        stderr=asyncio.subprocess.DEVNULL,
    )

    assert await process.wait() != 0
    assert await _name_of(org, project.id) == "search"
