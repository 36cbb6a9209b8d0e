"""The jobs of storage, each run by one worker at a time."""

from tollhouse.base.clock import Clock
from tollhouse.storage import idempotency, partitions
from tollhouse.storage.database import Database
from tollhouse.storage.leases import PURGE_EVERY_SECONDS, LeasedJob
from tollhouse.storage.partitions import DailyTable
from tollhouse.storage.sealing import Sealer


def jobs(
    database: Database, sealer: Sealer, clock: Clock, *, record_days: int
) -> tuple[LeasedJob, ...]:
    """Return the jobs that purge idempotency records and data keys, and create partitions."""

    async def purge() -> None:
        now = clock.now()
        await idempotency.purge(database, now, record_days=record_days)
        await sealer.destroy_old(now)
        await sealer.rewrap()

    async def make() -> None:
        await make_partitions(database)

    make_seconds = partitions.KEEP_EVERY.total_seconds()
    return (
        LeasedJob(name="purge", every_seconds=PURGE_EVERY_SECONDS, run=purge),
        LeasedJob(name="partitions", every_seconds=make_seconds, run=make),
    )


async def make_partitions(database: Database) -> None:
    """Create the partitions of the next days for every daily table."""
    for table in DailyTable:
        await partitions.ensure(database, table)
