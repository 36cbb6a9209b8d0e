"""Resolve abandoned holds: mark them as unsettled, and write them off when they are due.

A timeout alone never voids a hold, since the backend may have billed. Every step locks the account
and reads the hold again, so a settlement that arrives meanwhile wins, and two workers may run this
at the same time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tollhouse.base.ids import InstanceId
from tollhouse.ledger import open_holds
from tollhouse.ledger.marking import mark
from tollhouse.ledger.write_offs import write_off_due
from tollhouse.observability import ledger_metrics
from tollhouse.storage.database import Database
from tollhouse.storage.instances import DEAD_AFTER_SECONDS

REAP_EVERY: Final = timedelta(seconds=5)
"""Often enough that a dead worker's holds are marked within 60 s even if a reaper dies as well."""
OVERDUE_AFTER: Final = timedelta(seconds=60)
STALLED_MAX: Final = timedelta(seconds=120)
"""How long a commit may stall and its hold still be found by its deadline."""

# The holds of an organization that moved are counted in its new cell.
_UNSETTLED: Final = """
    SELECT count(*)
      FROM unsettled_holds u
      JOIN accounts a USING (organization_id)
     WHERE coalesce(a.frozen_until <= clock_timestamp(), true)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReaperRun:
    """The database's time when a run starts, and the deadline up to which earlier runs checked.

    `oldest_writer_at` is when the oldest transaction began that has written and not ended.
    """

    now: datetime
    checked_until: datetime
    oldest_writer_at: datetime | None

    @property
    def check_until(self) -> datetime:
        """The latest deadline whose holds are all visible and overdue, so each is read once.

        A hold is admitted before its deadline. So a transaction that is not committed yet can only
        store holds with deadlines after its own start.
        """
        visible_until = max(self.oldest_writer_at or self.now, self.now - STALLED_MAX)
        return min(visible_until, self.now - OVERDUE_AFTER)


async def run(database: Database) -> None:  # all organizations: one job reaps for all
    """Mark overdue and orphaned holds, write off holds that are due, and count unsettled holds."""
    begun = await begin(database)
    await _mark_overdue(database, begun)
    await _mark_orphaned(database, begun)
    await write_off_due(database)
    async with database.transaction() as tx:
        ledger_metrics.unsettled(await tx.fetch_value(_UNSETTLED))


async def begin(database: Database) -> ReaperRun:
    """Read what a run needs to know."""
    rows = await database.fetch_all(
        """
        SELECT clock_timestamp() AS now,
               greatest(checked_until, timestamptz 'epoch') AS checked_until,
               (SELECT min(a.xact_start)
                  FROM pg_stat_activity a
                 WHERE a.datname = current_database()
                   AND a.backend_xid IS NOT NULL) AS oldest_writer_at
          FROM reaper_progress
         WHERE is_only
        """
    )
    return ReaperRun(**rows[0])


async def _mark_overdue(database: Database, begun: ReaperRun) -> None:
    """Mark holds that are 60 s past their deadline, even if their worker is alive."""
    is_whole = True
    async for found in open_holds.find(
        database, after=begun.checked_until, until=begun.check_until, instances=None
    ):
        is_whole = await mark(database, found) and is_whole
    if is_whole:
        async with database.transaction() as tx:
            await tx.execute(
                "UPDATE reaper_progress SET checked_until = greatest(checked_until, $1)"
                " WHERE is_only",
                begun.check_until,
            )


async def _mark_orphaned(database: Database, begun: ReaperRun) -> None:
    """Mark the open holds of dead workers, without waiting for their deadlines.

    `_mark_overdue` has marked the holds with a deadline before `checked_until`.
    """
    dead = await _dead_instances(database)
    if not dead:
        return
    is_whole = True
    async for found in open_holds.find(
        database, after=begun.checked_until, until=None, instances=dead
    ):
        is_whole = await mark(database, found) and is_whole
    if is_whole:
        await _note_reaped(database, dead, begun.now)


async def _dead_instances(database: Database) -> list[InstanceId]:
    """Return dead workers that were not reaped since their last heartbeat; one may die twice."""
    rows = await database.fetch_all(
        """
        SELECT i.id
          FROM instances i
          LEFT JOIN reaped_instances r ON r.instance_id = i.id
         WHERE i.heartbeat_at < clock_timestamp() - make_interval(secs => $1)
           AND (r.reaped_at IS NULL OR r.reaped_at < i.heartbeat_at)
        """,
        DEAD_AFTER_SECONDS,
    )
    return [InstanceId(row["id"]) for row in rows]


async def _note_reaped(
    database: Database, instances: Sequence[InstanceId], reaped_at: datetime
) -> None:
    async with database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO reaped_instances (instance_id, reaped_at)
            SELECT id, $2 FROM unnest($1::uuid[]) id
            ON CONFLICT (instance_id) DO UPDATE SET reaped_at = EXCLUDED.reaped_at
            """,
            instances,
            reaped_at,
        )
        await tx.execute(
            "DELETE FROM reaped_instances r"
            " WHERE NOT EXISTS (SELECT FROM instances i WHERE i.id = r.instance_id)"
        )
