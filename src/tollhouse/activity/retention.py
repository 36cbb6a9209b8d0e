"""How long records are kept: single requests by whole days, their sums by the hour."""

import logging
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from tollhouse.activity import store
from tollhouse.storage import partitions
from tollhouse.storage.batches import in_batches
from tollhouse.storage.database import Database
from tollhouse.storage.errors import LockTimedOut, StatementFailed
from tollhouse.storage.partitions import DailyTable

logger = logging.getLogger("tollhouse.activity")

HOURS_KEPT: Final = timedelta(days=400)


async def remove_old_days(database: Database, *, record_days: int) -> None:
    """Drop the days that are older than this, each on its own."""
    async with database.transaction() as tx:
        first_kept = await partitions.today(tx) - timedelta(days=record_days)
        old = await partitions.older_than(tx, DailyTable.REQUESTS, first_kept)
    for partition in old:
        day = partition.day.isoformat()
        try:
            await partitions.remove(database, partition)
        except (LockTimedOut, StatementFailed) as failure:
            # Somebody reads the day, or another worker is at it too. There is no hurry.
            logger.warning("partition_not_dropped", exc_info=failure, extra={"day": day})
        else:
            logger.info("partition_dropped", extra={"day": day})


async def remove_old_hours(database: Database, now: datetime) -> None:
    """Forget sums that are older than any report asks for."""
    await in_batches(database, partial(store.remove_hours, before=now - HOURS_KEPT))
