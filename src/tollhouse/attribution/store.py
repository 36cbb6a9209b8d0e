"""SQL of attribution: the setting, and the deletion of values."""

import msgspec

from tollhouse.attribution.types import AttributionSetting
from tollhouse.base.ids import OrganizationId
from tollhouse.storage.database import Mutation, Transaction


async def setting(tx: Transaction, organization_id: OrganizationId) -> AttributionSetting:
    """Return the setting of an organization."""
    stored = await tx.fetch_value(
        "SELECT attribution::text FROM organizations WHERE id = $1", organization_id
    )
    return AttributionSetting() if stored is None else _decoded(stored)


async def setting_for_update(tx: Mutation, organization_id: OrganizationId) -> AttributionSetting:
    """Return the setting of an organization, and lock it."""
    stored = await tx.fetch_value(
        "SELECT attribution::text FROM organizations WHERE id = $1 FOR NO KEY UPDATE",
        organization_id,
    )
    return AttributionSetting() if stored is None else _decoded(stored)


async def save(tx: Mutation, organization_id: OrganizationId, changed: AttributionSetting) -> None:
    """Store a setting."""
    await tx.execute(
        "UPDATE organizations SET attribution = $2::jsonb WHERE id = $1",
        organization_id,
        msgspec.json.encode(changed).decode(),
    )


async def erase(tx: Mutation, organization_id: OrganizationId, dimension: str, value: str) -> int:
    """Replace a value by NULL on all days; return their number."""
    return await tx.execute(
        """
        UPDATE attribution_values
           SET value = NULL
         WHERE organization_id = $1
           AND dimension = $2
           AND value = $3
        """,
        organization_id,
        dimension,
        value,
    )


async def remove_old(tx: Transaction, limit: int) -> int:  # all organizations: retention
    """Delete values and attributions after the retention of their organizations."""
    return await tx.fetch_value(
        """
        WITH kept AS (
            SELECT id AS organization_id, (clock_timestamp() AT TIME ZONE 'UTC')::date
                   - (attribution ->> 'retention_days')::int AS first_day
              FROM organizations
             WHERE attribution IS NOT NULL
        ), attributions AS (
            DELETE FROM request_attributions
             WHERE (organization_id, dimension, request_id) IN (
                    SELECT a.organization_id, a.dimension, a.request_id
                      FROM kept k
                      JOIN request_attributions a
                        ON a.organization_id = k.organization_id AND a.day < k.first_day
                     LIMIT $1)
            RETURNING 1
        ), named AS (
            DELETE FROM attribution_values
             WHERE (organization_id, id) IN (
                    SELECT v.organization_id, v.id
                      FROM kept k
                      JOIN attribution_values v
                        ON v.organization_id = k.organization_id AND v.day < k.first_day
                     LIMIT $1)
            RETURNING 1
        )
        SELECT greatest((SELECT count(*) FROM attributions), (SELECT count(*) FROM named))
        """,
        limit,
    )


def _decoded(stored: str) -> AttributionSetting:
    return msgspec.json.decode(stored, type=AttributionSetting)
