"""The live workers, by the database's clock, with the secrets and schemas that each accepts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from tollhouse.base.ids import InstanceId
from tollhouse.storage import revisions
from tollhouse.storage.database import Transaction

HEARTBEAT_SECONDS = 5.0
DEAD_AFTER_SECONDS = 30.0
FORGOTTEN_AFTER_SECONDS = 86_400.0


OLDER_WORKERS: Final = """
    SELECT count(*)
      FROM instances
     WHERE heartbeat_at >= clock_timestamp() - make_interval(secs => $2)
       AND newest_revision < $1
"""
"""Counts the live workers that do not know revision $1."""

_HEARTBEAT: Final = """
    INSERT INTO instances (
        id, started_at, heartbeat_at, master_ids, newest_revision)
    VALUES ($1, clock_timestamp(), clock_timestamp(), $2, $3)
    ON CONFLICT (id) DO UPDATE
       SET heartbeat_at = clock_timestamp(), master_ids = EXCLUDED.master_ids,
           newest_revision = EXCLUDED.newest_revision
    RETURNING clock_timestamp()
"""


async def heartbeat(
    tx: Transaction,
    instance_id: InstanceId,
    *,
    master_ids: Sequence[str] = (),
) -> datetime:
    """Record a heartbeat and what the worker accepts; return the database's time.

    Also removes the rows of old workers. A worker without `master_ids` is ignored when the master
    secret is chosen. Raises `SchemaMismatch` if the schema was contracted past this version.
    """
    revisions.refuse_unaccepted(await revisions.state(tx.fetch_all))
    database_now: datetime = await tx.fetch_value(
        _HEARTBEAT, instance_id, list(master_ids), revisions.head()
    )
    await tx.execute(
        "DELETE FROM instances WHERE heartbeat_at < clock_timestamp() - make_interval(secs => $1)",
        FORGOTTEN_AFTER_SECONDS,
    )
    return database_now


async def leave(tx: Transaction, instance_id: InstanceId) -> None:
    """Remove the row of this worker after it has drained."""
    await tx.execute("DELETE FROM instances WHERE id = $1", instance_id)


async def live(tx: Transaction) -> list[InstanceId]:
    """Return the live workers."""
    rows = await tx.fetch_all(
        """
        SELECT id
          FROM instances
         WHERE heartbeat_at >= clock_timestamp() - make_interval(secs => $1)
        """,
        DEAD_AFTER_SECONDS,
    )
    return [InstanceId(row["id"]) for row in rows]


async def accepted_master_ids(tx: Transaction) -> list[list[str]]:
    """Return the master secrets that each live worker accepts, its preferred one first."""
    rows = await tx.fetch_all(
        """
        SELECT master_ids
          FROM instances
         WHERE heartbeat_at >= clock_timestamp() - make_interval(secs => $1)
           AND master_ids <> '{}'
        """,
        DEAD_AFTER_SECONDS,
    )
    return [list(row["master_ids"]) for row in rows]
