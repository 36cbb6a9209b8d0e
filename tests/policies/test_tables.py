"""What the tables themselves refuse, whatever a statement says."""

import asyncpg
import pytest

from tests.support.organization_fixture import OrganizationFixture
from tests.support.policies import new_policy

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE policy_versions SET rule = 'Is it so?'",
        "DELETE FROM policy_versions",
        "TRUNCATE policy_versions CASCADE",
    ],
)
async def test_a_publication_cannot_be_changed(
    org: OrganizationFixture, database_url: str, statement: str
) -> None:
    await new_policy(org, ["publish"])
    connection = await asyncpg.connect(database_url)
    try:
        with pytest.raises(asyncpg.RaiseError, match="append-only"):
            await connection.execute(statement)
    finally:
        await connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE policies SET state = 'draft' WHERE organization_id = $1",
        "UPDATE policies SET current_version = NULL WHERE organization_id = $1",
        "UPDATE policies SET state = 'retired' WHERE organization_id = $1",
        "UPDATE policies SET revision = 0 WHERE organization_id = $1",
        """
        INSERT INTO policy_targets (organization_id, policy_id)
        SELECT organization_id, id FROM policies WHERE organization_id = $1
        """,
    ],
)
async def test_no_row_contradicts_another(
    org: OrganizationFixture, database_url: str, statement: str
) -> None:
    await new_policy(org, ["publish"])
    connection = await asyncpg.connect(database_url)
    try:
        with pytest.raises(asyncpg.IntegrityConstraintViolationError):
            await connection.execute(statement, org.organization_id)
    finally:
        await connection.close()
