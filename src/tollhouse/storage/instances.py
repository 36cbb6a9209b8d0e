"""Which workers live, by the database's clock, and which pepper versions each of them accepts."""

from tollhouse.base.ids import InstanceId
from tollhouse.storage.database import Transaction

HEARTBEAT_SECONDS = 5.0
DEAD_AFTER_SECONDS = 30.0
FORGOTTEN_AFTER_SECONDS = 86_400.0


async def heartbeat(
    tx: Transaction, instance_id: InstanceId, *, pepper_versions: list[int]
) -> None:
    """Say that this worker lives. Rows of workers that are long gone are removed on the way."""
    await tx.execute(
        """
        INSERT INTO instances (id, started_at, heartbeat_at, pepper_versions)
        VALUES ($1, clock_timestamp(), clock_timestamp(), $2)
        ON CONFLICT (id) DO UPDATE
           SET heartbeat_at = clock_timestamp(), pepper_versions = EXCLUDED.pepper_versions
        """,
        instance_id,
        pepper_versions,
    )
    await tx.execute(
        "DELETE FROM instances WHERE heartbeat_at < clock_timestamp() - make_interval(secs => $1)",
        FORGOTTEN_AFTER_SECONDS,
    )


async def leave(tx: Transaction, instance_id: InstanceId) -> None:
    """Say that this worker has drained and is gone."""
    await tx.execute("DELETE FROM instances WHERE id = $1", instance_id)


async def versions_accepted_by_all(tx: Transaction, own_versions: list[int]) -> list[int]:
    """Those of our own pepper versions that every live worker accepts as well."""
    rows = await tx.fetch_all(
        """
        SELECT pepper_versions
          FROM instances
         WHERE heartbeat_at >= clock_timestamp() - make_interval(secs => $1)
        """,
        DEAD_AFTER_SECONDS,
    )
    accepted = set(own_versions)
    for row in rows:
        accepted &= set(row["pepper_versions"])
    return sorted(accepted)
