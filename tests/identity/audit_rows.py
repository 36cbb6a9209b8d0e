"""The audit log of one organization, as it stands in the table."""

from typing import Any

from tests.support.world import World


async def audit_rows(world: World) -> list[dict[str, Any]]:
    """In the order of their instants: IDs of the same millisecond have none."""
    async with world.database.transaction() as tx:
        found = await tx.fetch_all(
            "SELECT * FROM audit_log WHERE organization_id = $1 ORDER BY occurred_at, id",
            world.organization_id,
        )
    return [dict(row) for row in found]
