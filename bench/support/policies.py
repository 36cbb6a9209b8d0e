"""Many policies in effect at once, written as publishing would have left them."""

from typing import Final

import asyncpg

from tollhouse.base.ids import OrganizationId
from tollhouse.base.policies import Direction, Mode

FILL: Final = (
    """
    INSERT INTO policies (organization_id, id, name, description, state, revision, rule,
                          direction, mode, scope, project_ids, base_version, created_at,
                          updated_at)
    SELECT $1, gen_random_uuid(), 'a policy', '', 'draft', 1, $3, $4, $5, 'organization', '{}', 0,
           now(), now()
      FROM generate_series(1, $2)
    """,
    """
    INSERT INTO policy_versions (organization_id, policy_id, version, rule, direction, mode,
                                 scope, project_ids, threshold_in_force_basis_points,
                                 published_at)
    SELECT organization_id, id, 1, rule, direction, mode, scope, project_ids, 5000, now()
      FROM policies
     WHERE organization_id = $1
    """,
    """
    UPDATE policies
       SET state = mode, revision = 2, base_version = 1, current_version = 1
     WHERE organization_id = $1
    """,
    """
    INSERT INTO policy_targets (organization_id, policy_id)
    SELECT organization_id, id FROM policies WHERE organization_id = $1
    """,
)


async def fill(
    url: str,
    organization_id: OrganizationId,
    count: int,
    *,
    rule: str,
    direction: Direction = Direction.BOTH,
    mode: Mode = Mode.ENFORCING,
) -> None:
    """So many with the same rule, for an organization that has none."""
    connection = await asyncpg.connect(f"{url}?options=-csynchronous_commit%3Doff")
    first, *others = FILL
    try:
        values = (organization_id, count, rule, direction.value, mode.value)
        await connection.execute(first, *values, timeout=600)
        for statement in others:
            await connection.execute(statement, organization_id, timeout=600)
    finally:
        await connection.close()
