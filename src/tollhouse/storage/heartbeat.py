"""The heartbeat that records that a worker is alive and which secrets it accepts."""

from collections.abc import Sequence

from tollhouse.base.clock import DatabaseClock
from tollhouse.base.ids import ID_CLOCK, InstanceId
from tollhouse.storage import instances
from tollhouse.storage.database import Database, Transaction


class Heartbeat:
    """Records heartbeats in the database. One per worker.

    `is_alive` is True if the last heartbeat was recorded. A worker without a heartbeat is not
    ready: other workers write without regard to the master secrets that it accepts.
    """

    def __init__(
        self,
        database: Database,
        clock: DatabaseClock,
        instance_id: InstanceId,
        *,
        master_ids: Sequence[str],
    ) -> None:
        self._database = database
        self._clock = clock
        self._instance_id = instance_id
        self._master_ids = master_ids
        self.is_alive = False

    async def beat(self) -> None:
        """Record a heartbeat in a transaction of its own."""
        try:
            async with self._database.transaction() as tx:
                await self.record(tx)
        except BaseException:
            self.is_alive = False
            raise

    async def record(self, tx: Transaction) -> None:
        """Record a heartbeat, and correct the clock and that of new IDs by the database's time."""
        asked_seconds = self._clock.monotonic_seconds()
        database_now = await instances.heartbeat(
            tx,
            self._instance_id,
            master_ids=self._master_ids,
        )
        self._clock.correct(database_now, asked_seconds=asked_seconds)
        ID_CLOCK.set(self._clock.now())
        self.is_alive = True

    async def leave(self) -> None:
        """Remove the worker's row after it has stopped."""
        async with self._database.transaction() as tx:
            await instances.leave(tx, self._instance_id)
