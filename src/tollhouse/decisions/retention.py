"""How long decisions are kept: single ones by whole days, their sums for as long as reports ask."""

import logging
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from tollhouse.decisions import store
from tollhouse.storage import partitions
from tollhouse.storage.batches import in_batches
from tollhouse.storage.database import Database
from tollhouse.storage.errors import LockTimedOut, StatementFailed
from tollhouse.storage.partitions import DailyTable

logger = logging.getLogger("tollhouse.decisions")

SUMS_KEPT: Final = timedelta(days=400)
_TABLES: Final = (DailyTable.EXAMINATIONS, DailyTable.POLICY_DECISIONS)


async def remove_old_days(database: Database, *, decision_days: int) -> None:
    """Drop the days that are older than this, each on its own."""
    for table in _TABLES:
        async with database.transaction() as tx:
            first_kept = await partitions.today(tx) - timedelta(days=decision_days)
            old = await partitions.older_than(tx, table, first_kept)
        for partition in old:
            extra = {"day": partition.day.isoformat(), "table": table.value}
            try:
                await partitions.remove(database, partition)
            except (LockTimedOut, StatementFailed) as failure:
                # Somebody reads the day, or another worker is at it too. There is no hurry.
                logger.warning("partition_not_dropped", exc_info=failure, extra=extra)
            else:
                logger.info("partition_dropped", extra=extra)


async def remove_old_sums(database: Database, now: datetime) -> None:
    """Forget sums that are older than any report asks for."""
    await in_batches(database, partial(store.remove_days, first_kept=(now - SUMS_KEPT).date()))
