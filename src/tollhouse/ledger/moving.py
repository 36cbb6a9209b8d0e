"""The account and the days of an organization that moves to another cell."""

from collections.abc import Sequence
from datetime import date, datetime

from tollhouse.base.ids import OrganizationId
from tollhouse.ledger.errors import DayIsClosed, DayIsOpen
from tollhouse.storage import partitions
from tollhouse.storage.database import Transaction
from tollhouse.storage.partitions import DailyTable


async def set_frozen(
    tx: Transaction, organization_id: OrganizationId, until: datetime | None
) -> None:
    """Let the account admit nothing until a time, or let it admit again (None)."""
    await tx.execute(
        "UPDATE accounts SET frozen_until = $2 WHERE organization_id = $1", organization_id, until
    )


async def lock(tx: Transaction, organization_id: OrganizationId) -> None:
    """Lock the account: until the commit nothing is admitted, settled or written off."""
    await tx.execute(
        "SELECT 1 FROM accounts WHERE organization_id = $1 FOR UPDATE", organization_id
    )


async def is_drained(tx: Transaction, organization_id: OrganizationId) -> bool:
    """Return whether every hold is resolved or marked as unsettled.

    The sums are compared first, because holds are many. Holds of nothing do not show in sums.
    """
    return await tx.fetch_value(
        """
        SELECT CASE WHEN a.reserved_pico
                         <> (SELECT coalesce(sum(u.held_pico), 0)
                               FROM unsettled_holds u
                              WHERE u.organization_id = $1) THEN false
                    ELSE NOT EXISTS (
                         SELECT FROM ledger_entries hold
                          WHERE hold.organization_id = $1
                            AND hold.phase = 0
                            AND NOT EXISTS (
                                SELECT FROM ledger_entries resolution
                                 WHERE resolution.organization_id = $1
                                   AND resolution.admitted_day = hold.admitted_day
                                   AND resolution.reservation_id = hold.reservation_id
                                   AND resolution.phase = 1)
                            AND NOT EXISTS (
                                SELECT FROM unsettled_holds u
                                 WHERE u.organization_id = $1
                                   AND u.admitted_day = hold.admitted_day
                                   AND u.reservation_id = hold.reservation_id))
                     END
          FROM accounts a
         WHERE a.organization_id = $1
        """,
        organization_id,
    )


async def days_of(
    tx: Transaction, organization_id: OrganizationId
) -> tuple[list[date], list[date]]:
    """Return the open days with entries of the organization, and its closed days."""
    open_days = await tx.fetch_all(
        """
        SELECT DISTINCT admitted_day AS day
          FROM ledger_entries e
         WHERE organization_id = $1
           AND NOT EXISTS (SELECT FROM closed_days c WHERE c.day = e.admitted_day)
         ORDER BY 1
        """,
        organization_id,
    )
    closed_days = await tx.fetch_all(
        "SELECT DISTINCT admitted_day AS day FROM ledger_closings"
        " WHERE organization_id = $1 ORDER BY 1",
        organization_id,
    )
    return [row["day"] for row in open_days], [row["day"] for row in closed_days]


async def prepare_days(  # all organizations: days are closed for all of them
    tx: Transaction, *, open_days: Sequence[date], closed_days: Sequence[date]
) -> None:
    """Make the partitions of open days, and close closed days that never had entries here.

    Raises `DayIsClosed` or `DayIsOpen` if this cell has another state of a day: then it keeps
    entries for another number of days.
    """
    for day in open_days:
        if await _is_closed(tx, day):
            raise DayIsClosed(day=day)
        await partitions.make(tx, DailyTable.LEDGER_ENTRIES, first_day=day, last_day=day)
    for day in closed_days:
        if await _is_closed(tx, day):
            continue
        if await _has_partition(tx, day):
            raise DayIsOpen(day)
        await tx.execute("INSERT INTO closed_days (day) VALUES ($1)", day)


async def _is_closed(tx: Transaction, day: date) -> bool:
    """Read a day's state and keep it until the commit."""
    await tx.execute(
        "SELECT pg_advisory_xact_lock(hashtext('ledger_closing'), $1::date - 'epoch'::date)", day
    )
    return await tx.fetch_value("SELECT EXISTS (SELECT FROM closed_days WHERE day = $1)", day)


async def _has_partition(tx: Transaction, day: date) -> bool:
    return await tx.fetch_value(
        "SELECT to_regclass('ledger_entries_' || to_char($1::date, 'YYYYMMDD')) IS NOT NULL", day
    )
