"""The live workers, by the database's clock."""

from dataclasses import dataclass

from tollhouse.base.ids import InstanceId
from tollhouse.storage.database import Database
from tollhouse.storage.instances import DEAD_AFTER_SECONDS


@dataclass(frozen=True, kw_only=True, slots=True)
class Worker:
    """A live worker and the secrets that it accepts."""

    id: InstanceId
    master_ids: tuple[str, ...]


async def live(database: Database) -> list[Worker]:
    """Return the workers with a recent heartbeat, in the order of their start."""
    rows = await database.fetch_all(
        """
        SELECT id, master_ids
          FROM instances
         WHERE heartbeat_at >= clock_timestamp() - make_interval(secs => $1)
         ORDER BY id
        """,
        DEAD_AFTER_SECONDS,
    )
    return [
        Worker(
            id=InstanceId(row["id"]),
            master_ids=tuple(row["master_ids"]),
        )
        for row in rows
    ]
