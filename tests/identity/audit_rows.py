"""The audit log of one organization, as it stands in the table."""

from typing import Any

from tests.support.organization_fixture import OrganizationFixture


async def audit_rows(org: OrganizationFixture) -> list[dict[str, Any]]:
    """In the order of their instants: IDs of the same millisecond have none."""
    async with org.database.transaction() as tx:
        found = await tx.fetch_all(
            "SELECT * FROM audit_log WHERE organization_id = $1 ORDER BY occurred_at, id",
            org.organization_id,
        )
    return [dict(row) for row in found]
