"""Daily partitions, which are created ahead of time and dropped after their retention.

A partition is dropped without locking its parent table: it is first detached concurrently. If a
removal cannot get a lock, the next run finishes it.
"""

import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import StrEnum
from typing import Final, LiteralString, cast

from tollhouse.storage.database import Database, Transaction
from tollhouse.storage.errors import LockTimedOut, StatementFailed

logger = logging.getLogger("tollhouse.storage")

KEEP_EVERY: Final = timedelta(hours=1)
DAYS_BEHIND: Final = timedelta(days=1)
DAYS_AHEAD: Final = timedelta(days=7)
LOCK_SECONDS: Final = 2
_DAY_TABLE: Final = re.compile(r"[a-z_]+_[0-9]{8}", re.ASCII)


class DailyTable(StrEnum):
    """Tables that have one partition per UTC day."""

    LEDGER_ENTRIES = "ledger_entries"
    REQUESTS = "requests"
    EVALUATIONS = "evaluations"
    POLICY_DECISIONS = "policy_decisions"


class PartitionState(StrEnum):
    """The progress of a partition's removal."""

    ATTACHED = "attached"
    DETACHING = "detaching"
    DETACHED = "detached"


@dataclass(frozen=True, kw_only=True, slots=True)
class Partition:
    """The partition of one day."""

    parent: DailyTable
    day: date
    state: PartitionState


# A new day has no statistics. The planner then assumes that an organization has few rows in it, and
# would read and sort all of them instead of scanning the index.
_READ_IN_INDEX_ORDER: Final = """
    SELECT set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true)
"""


async def read_in_index_order(tx: Transaction) -> None:
    """Make the rest of the transaction read days from the end of an index, without sorting."""
    await tx.execute(_READ_IN_INDEX_ORDER)


async def ensure(database: Database, parent: DailyTable) -> None:
    """Create partitions from yesterday to a week ahead; leave them to the next run if locked."""
    try:
        async with database.transaction() as tx:
            now = await today(tx)
            made = await make(tx, parent, first_day=now - DAYS_BEHIND, last_day=now + DAYS_AHEAD)
    except LockTimedOut:
        logger.warning("partitions_not_made", extra={"table": parent.value})
        return
    if made:
        logger.info("partitions_made", extra={"table": parent.value, "count": made})


async def make(tx: Transaction, parent: DailyTable, *, first_day: date, last_day: date) -> int:
    """Create and attach the missing partitions; return their number."""
    await tx.execute("SELECT set_config('lock_timeout', $1, true)", f"{LOCK_SECONDS}s")
    return await tx.fetch_value(
        """
        SELECT count(*) FILTER (WHERE make_day_partition($1, day::date))
          FROM generate_series($2::date, $3::date, '1 day') day
        """,
        parent.value,
        first_day,
        last_day,
    )


async def missing(tx: Transaction, parent: DailyTable, *, days_ahead: int) -> int:
    """Return how many days from today to `days_ahead` days ahead have no partition."""
    return await tx.fetch_value(
        """
        SELECT count(*)
          FROM generate_series(0, $2::int) ahead
         WHERE NOT EXISTS (
                SELECT FROM pg_inherits
                 WHERE inhparent = $1::text::regclass
                   AND inhrelid = to_regclass($1 || '_' || to_char(
                        (clock_timestamp() AT TIME ZONE 'UTC')::date + ahead, 'YYYYMMDD')))
        """,
        parent.value,
        days_ahead,
    )


async def days_ahead(tx: Transaction, parent: DailyTable) -> int | None:
    """Return how many days after today have partitions without a gap, -1 if today has none.

    Counts up to `DAYS_AHEAD`. Returns None if there is no such table.
    """
    return await tx.fetch_value(
        """
        SELECT coalesce(min(ahead), $2::int + 1) - 1
          FROM generate_series(0, $2::int) ahead
         WHERE NOT EXISTS (
                SELECT FROM pg_inherits
                 WHERE inhparent = to_regclass($1::text)
                   AND inhrelid = to_regclass($1 || '_' || to_char(
                        (clock_timestamp() AT TIME ZONE 'UTC')::date + ahead, 'YYYYMMDD')))
        HAVING to_regclass($1::text) IS NOT NULL
        """,
        parent.value,
        DAYS_AHEAD.days,
    )


async def older_than(tx: Transaction, parent: DailyTable, first_day: date) -> list[Partition]:
    """Return the partitions of all days before `first_day`, oldest first."""
    rows = await tx.fetch_all(
        """
        SELECT to_date(right(c.relname, 8), 'YYYYMMDD') AS day,
               CASE WHEN i.inhrelid IS NULL THEN 'detached'
                    WHEN i.inhdetachpending THEN 'detaching'
                    ELSE 'attached' END AS state
          FROM pg_class c
          LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
         WHERE c.relnamespace = current_schema()::regnamespace
           AND c.relkind = 'r'
           AND c.relname ~ ('^' || $1::text || '_[0-9]{8}$')
           AND c.relname < $1 || '_' || to_char($2::date, 'YYYYMMDD')
         ORDER BY 1
        """,
        parent.value,
        first_day,
    )
    return [
        Partition(parent=parent, day=row["day"], state=PartitionState(row["state"])) for row in rows
    ]


async def remove_old(
    database: Database,
    parent: DailyTable,
    *,
    days_kept: int,
    prepare: Callable[[Partition], Awaitable[bool]] | None = None,
) -> None:
    """Drop the days older than `days_kept` days; keep a day for which `prepare` returns False."""
    async with database.transaction() as tx:
        first_kept = await today(tx) - timedelta(days=days_kept)
        old = await older_than(tx, parent, first_kept)
    for partition in old:
        extra = {"day": partition.day.isoformat(), "table": parent.value}
        try:
            if prepare is not None and not await prepare(partition):
                logger.warning("day_still_open", extra=extra)
                continue
            await remove(database, partition)
        except (LockTimedOut, StatementFailed) as failure:
            # A query reads the day, or another worker drops it too. The next run tries again.
            logger.warning("partition_not_dropped", exc_info=failure, extra=extra)
        else:
            logger.info("partition_dropped", extra=extra)


async def remove(database: Database, partition: Partition) -> None:
    """Detach and drop a partition, continuing an earlier attempt."""
    await detach(database, partition)
    await _run(database, f"DROP TABLE {table_of(partition)}")


async def detach(database: Database, partition: Partition) -> Partition:
    """Detach a partition, continuing an earlier attempt, and return it as it is then."""
    parent, table = partition.parent.value, table_of(partition)
    if partition.state is PartitionState.ATTACHED:
        await _run(database, f"ALTER TABLE {parent} DETACH PARTITION {table} CONCURRENTLY")
    elif partition.state is PartitionState.DETACHING:
        await _run(database, f"ALTER TABLE {parent} DETACH PARTITION {table} FINALIZE")
    return replace(partition, state=PartitionState.DETACHED)


async def today(tx: Transaction) -> date:
    """Return the UTC day by the database's clock, which all workers share."""
    return await tx.fetch_value("SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date")


async def _run(database: Database, statement: str) -> None:
    # A table's name cannot be an argument; `table_of` lets no other name through.
    await database.run_outside(cast("LiteralString", statement), seconds=LOCK_SECONDS)


def table_of(partition: Partition) -> str:
    """Return the name of a partition's table."""
    name = f"{partition.parent}_{partition.day:%Y%m%d}"
    assert _DAY_TABLE.fullmatch(name), "a day makes eight digits"
    return name
