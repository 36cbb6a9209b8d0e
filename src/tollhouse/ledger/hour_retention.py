"""Removal of old sums of costs by hour.

The hours of a day go when the day is closed, and older than `HOURS_KEPT`: its sums are then final,
and those by day stay. Reports refuse such hours from `HOURS_KEPT` on, and a day later they go.
"""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Final
from uuid import UUID

from tollhouse.base.retention import HOURS_KEPT
from tollhouse.storage.batches import in_batches
from tollhouse.storage.database import Database, Transaction

REMOVED_AFTER: Final = HOURS_KEPT + timedelta(days=1)
ORGANIZATIONS_MAX: Final = 200

_ORGANIZATIONS: Final = """
    SELECT id
      FROM organizations
     WHERE $1::uuid IS NULL OR id > $1
     ORDER BY id
     LIMIT $2
"""
_REMOVE: Final = """
    WITH old AS (
        SELECT h.organization_id, h.hour, h.project_id, h.api_key_id, h.model
          FROM cost_hourly h
         WHERE h.organization_id = ANY($1)
           AND h.hour < date_trunc('day', clock_timestamp() - $2::interval, 'UTC')
           AND EXISTS (
                SELECT FROM closed_days c WHERE c.day = (h.hour AT TIME ZONE 'UTC')::date)
         LIMIT $3
    )
    DELETE FROM cost_hourly h
     USING old
     WHERE h.organization_id = old.organization_id
       AND h.hour = old.hour
       AND h.project_id = old.project_id
       AND h.api_key_id = old.api_key_id
       AND h.model = old.model
"""


async def remove_old(  # all organizations: retention is the deployment's
    database: Database,
) -> None:
    """Delete the hours of old, closed days."""
    last = None
    while True:
        async with database.transaction() as tx:
            rows = await tx.fetch_all(_ORGANIZATIONS, last, ORGANIZATIONS_MAX)
        if not rows:
            return
        ids = [row["id"] for row in rows]
        await in_batches(database, partial(_remove, organization_ids=ids))
        last = ids[-1]


async def _remove(  # all organizations: retention is the deployment's
    tx: Transaction, rows_max: int, *, organization_ids: Sequence[UUID]
) -> int:
    return await tx.execute(_REMOVE, organization_ids, REMOVED_AFTER, rows_max)
