"""Days of the ledger as tables: the one place where a statement names a table by its day.

A partition is taken out without ever locking the ledger: it is detached concurrently, and only
then dropped. Whatever gives up on a lock is found half-done and finished by the next run.
"""

import re
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Final, LiteralString, cast

from tollhouse.storage.database import Database, Transaction

LOCK_SECONDS: Final = 2
_DAY_TABLE: Final = re.compile(r"ledger_entries_[0-9]{8}", re.ASCII)


class PartitionState(StrEnum):
    """How far a partition is on its way out."""

    ATTACHED = "attached"
    DETACHING = "detaching"
    DETACHED = "detached"


@dataclass(frozen=True, kw_only=True, slots=True)
class Partition:
    """The table of one day."""

    day: date
    state: PartitionState


async def make(tx: Transaction, *, first_day: date, last_day: date) -> int:
    """Make and attach the days that are missing; returns how many were."""
    await tx.execute("SELECT set_config('lock_timeout', $1, true)", f"{LOCK_SECONDS}s")
    return await tx.fetch_value(
        """
        SELECT count(*) FILTER (WHERE ledger_make_partition(day::date))
          FROM generate_series($1::date, $2::date, '1 day') day
        """,
        first_day,
        last_day,
    )


async def older_than(tx: Transaction, first_day: date) -> list[Partition]:
    """The tables of all days before this one, oldest first."""
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
           AND c.relname ~ '^ledger_entries_[0-9]{8}$'
           AND c.relname < 'ledger_entries_' || to_char($1::date, 'YYYYMMDD')
         ORDER BY 1
        """,
        first_day,
    )
    return [Partition(day=row["day"], state=PartitionState(row["state"])) for row in rows]


async def remove(database: Database, partition: Partition) -> None:
    """Detach and drop, from wherever an earlier try gave up."""
    table = _table_of(partition.day)
    if partition.state is PartitionState.ATTACHED:
        await _run(database, f"ALTER TABLE ledger_entries DETACH PARTITION {table} CONCURRENTLY")
    elif partition.state is PartitionState.DETACHING:
        await _run(database, f"ALTER TABLE ledger_entries DETACH PARTITION {table} FINALIZE")
    await _run(database, f"DROP TABLE {table}")


async def _run(database: Database, statement: str) -> None:
    # A table's name cannot be an argument; `_table_of` lets no other name through.
    await database.run_outside(cast("LiteralString", statement), lock_seconds=LOCK_SECONDS)


def _table_of(day: date) -> str:
    name = f"ledger_entries_{day:%Y%m%d}"
    assert _DAY_TABLE.fullmatch(name), "a day makes eight digits"
    return name
