"""The jobs of storage, each run by one worker at a time."""

import logging
from typing import Final

from tollhouse.base.clock import Clock
from tollhouse.storage import audit_chain, idempotency, partitions
from tollhouse.storage.database import Database
from tollhouse.storage.leases import PURGE_EVERY_SECONDS, LeasedJob
from tollhouse.storage.partitions import DailyTable
from tollhouse.storage.sealing import Sealer

logger = logging.getLogger("tollhouse.audit")

LOG_HEADS_EVERY_SECONDS: Final = 3_600.0


def jobs(
    database: Database, sealer: Sealer, clock: Clock, *, record_days: int
) -> tuple[LeasedJob, ...]:
    """Return the jobs that purge secrets, create partitions, and log heads of audit chains."""

    async def purge() -> None:
        now = clock.now()
        await idempotency.purge(database, now, record_days=record_days)
        await sealer.destroy_old(now)
        await sealer.rewrap()

    async def make() -> None:
        await make_partitions(database)

    async def log_heads() -> None:
        async with database.transaction() as tx:
            heads = await audit_chain.heads_moved(tx, seconds=2 * LOG_HEADS_EVERY_SECONDS)
        for head in heads:
            extra = {"organization_id": str(head.organization_id), "number": head.number}
            logger.info("audit_head", extra={**extra, "sha256": head.hash.hex()})

    make_seconds = partitions.KEEP_EVERY.total_seconds()
    return (
        LeasedJob(name="purge", every_seconds=PURGE_EVERY_SECONDS, run=purge),
        LeasedJob(name="partitions", every_seconds=make_seconds, run=make),
        LeasedJob(name="audit-heads", every_seconds=LOG_HEADS_EVERY_SECONDS, run=log_heads),
    )


async def make_partitions(database: Database) -> None:
    """Create the partitions of the next days for every daily table."""
    for table in DailyTable:
        await partitions.ensure(database, table)
