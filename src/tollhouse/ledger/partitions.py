"""Removal of old days of the ledger.

A day may be dropped only if none of its holds is open and its sums are stored in
`ledger_closings`, from which `verification` starts.
"""

from collections.abc import Awaitable, Callable
from datetime import date
from typing import Final

from tollhouse.storage import partitions
from tollhouse.storage.database import Database, Transaction
from tollhouse.storage.partitions import DailyTable, Partition, PartitionState

CLOSING_SECONDS_MAX: Final = 3600


async def remove_old(
    database: Database,
    *,
    entry_days: int,
    is_archived: Callable[[Partition], Awaitable[bool]] | None = None,
) -> None:
    """Close and drop the days that are older than `entry_days`.

    With `is_archived`, only days for which it returns True are dropped.
    """

    async def prepare(partition: Partition) -> bool:
        is_closed = await close(database, partition)
        return is_closed and (is_archived is None or await is_archived(partition))

    await partitions.remove_old(
        database, DailyTable.LEDGER_ENTRIES, days_kept=entry_days, prepare=prepare
    )


async def close(database: Database, partition: Partition) -> bool:
    """Store the sums of a day once; return False while one of its holds is open."""
    async with database.transaction(statement_seconds=CLOSING_SECONDS_MAX) as tx:
        return await _close(tx, partition)


async def is_closed(tx: Transaction, day: date) -> bool:
    """Return whether the day's sums are final; this cannot change until the transaction ends."""
    await tx.execute(
        "SELECT pg_advisory_xact_lock_shared(hashtext('ledger_closing'), $1::date - 'epoch'::date)",
        day,
    )
    return await tx.fetch_value("SELECT EXISTS (SELECT FROM closed_days WHERE day = $1)", day)


async def make_day(database: Database, day: date) -> None:
    """Make the partition of a day for usage that is entered long after it."""
    async with database.transaction() as tx:
        await partitions.make(tx, DailyTable.LEDGER_ENTRIES, first_day=day, last_day=day)


async def _close(tx: Transaction, partition: Partition) -> bool:
    """Store the day's sums once; return whether the day may be dropped."""
    day = partition.day
    # Keeps out an operator's backfill, the only writer that can still add entries to the day.
    await tx.execute(
        "SELECT pg_advisory_xact_lock(hashtext('ledger_closing'), $1::date - 'epoch'::date)", day
    )
    if await tx.fetch_value("SELECT EXISTS (SELECT FROM closed_days WHERE day = $1)", day):
        return True
    if partition.state is not PartitionState.ATTACHED or await has_open_hold(tx, day):
        return False
    await _write_closings(tx, day)
    await tx.execute("INSERT INTO closed_days (day) VALUES ($1)", day)
    return True


async def has_open_hold(  # all organizations: days are closed as a whole
    tx: Transaction, day: date
) -> bool:
    """Return whether a request of the day has no final cost yet."""
    return await tx.fetch_value(
        """
        SELECT EXISTS (
            SELECT FROM ledger_entries hold
             WHERE hold.admitted_day = $1
               AND hold.phase = 0
               AND NOT EXISTS (
                    SELECT FROM ledger_entries resolution
                     WHERE resolution.organization_id = hold.organization_id
                       AND resolution.admitted_day = $1
                       AND resolution.reservation_id = hold.reservation_id
                       AND resolution.phase = 1))
        """,
        day,
    )


async def _write_closings(  # all organizations: days are closed as a whole
    tx: Transaction, day: date
) -> None:
    await tx.execute(
        """
        INSERT INTO ledger_closings (
            organization_id, admitted_day, project_id, api_key_id, model,
            requests, estimated_requests, input_tokens, cached_input_tokens, output_tokens, images,
            input_pico, cached_input_pico, output_pico, image_pico, request_pico,
            cache_write_tokens, cache_write_pico, excess_pico, unknown_pico)
        SELECT organization_id, admitted_day, project_id, api_key_id, model,
               count(*) FILTER (WHERE is_cost), count(*) FILTER (WHERE is_cost AND is_estimated),
               coalesce(sum(input_tokens) FILTER (WHERE is_cost), 0),
               coalesce(sum(cached_input_tokens) FILTER (WHERE is_cost), 0),
               coalesce(sum(output_tokens) FILTER (WHERE is_cost), 0),
               coalesce(sum(images) FILTER (WHERE is_cost), 0),
               sum(input_pico), sum(cached_input_pico), sum(output_pico), sum(image_pico),
               sum(request_pico),
               coalesce(sum(cache_write_tokens) FILTER (WHERE is_cost), 0),
               sum(cache_write_pico), sum(excess_pico), sum(unknown_pico)
          FROM (SELECT *, kind = 'post' OR posted_pico > 0 AS is_cost
                  FROM ledger_entries
                 WHERE admitted_day = $1
                   AND phase = 1) resolution
         GROUP BY organization_id, admitted_day, project_id, api_key_id, model
        HAVING bool_or(is_cost OR excess_pico + unknown_pico > 0)
        """,
        day,
    )
