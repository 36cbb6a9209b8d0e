"""Find holds without a resolution, and lock their accounts."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Final, TypeVar
from uuid import UUID

from tollhouse.base.ids import InstanceId, OrganizationId, ReservationId
from tollhouse.base.money import PicoUsd
from tollhouse.storage.database import Database, Row, Transaction

READ_MAX: Final = 1000
LOCK_TIMEOUT: Final = "2s"

# The limit bounds the rows read, not the holds found: a busy day has millions of resolved holds.
# The next batch starts after the last row read. A deadline may be days after the admission, so this
# reads the index of deadlines of every day.
_READ: Final = """
    SELECT organization_id, admitted_day, reservation_id, deadline_at, held_pico,
           $4::uuid[] IS NULL OR instance_id = ANY($4) AS is_wanted
      FROM ledger_entries
     WHERE kind = 'reserve'
       AND (deadline_at, reservation_id) > ($1, $2)
       AND deadline_at <= coalesce($3, timestamptz 'infinity')
     ORDER BY deadline_at, reservation_id
     LIMIT $5
"""
# Runs for one day at a time with a plan of its own, so that only that day's partition is opened.
_UNRESOLVED: Final = """
    SELECT hold.organization_id, hold.reservation_id
      FROM unnest($2::uuid[], $3::uuid[]) AS hold (organization_id, reservation_id)
      LEFT JOIN LATERAL (
            SELECT e.phase
              FROM ledger_entries e
             WHERE e.organization_id = hold.organization_id
               AND e.admitted_day = $1
               AND e.reservation_id = hold.reservation_id
               AND e.phase = 1
             LIMIT 1) resolution ON true
     WHERE resolution.phase IS NULL
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenHold:
    """A hold without a resolution."""

    organization_id: OrganizationId
    admitted_day: date
    reservation_id: ReservationId
    held_pico_usd: PicoUsd


def open_hold(row: Row) -> OpenHold:
    """Return the hold in a row of `ledger_entries` or `unsettled_holds`."""
    return OpenHold(
        organization_id=OrganizationId(row["organization_id"]),
        admitted_day=row["admitted_day"],
        reservation_id=ReservationId(row["reservation_id"]),
        held_pico_usd=PicoUsd(row["held_pico"]),
    )


async def find(  # all organizations: deadlines are swept for all
    database: Database,
    *,
    after: datetime,
    until: datetime | None,
    instances: Sequence[InstanceId] | None,
) -> AsyncIterator[list[OpenHold]]:
    """Yield open holds in the order of their deadlines, in batches."""
    last: tuple[datetime, UUID] = (after, UUID(int=2**128 - 1))
    while True:
        async with database.transaction() as tx:
            # On a young partition the planner would sort the whole range for every batch of it.
            await tx.execute("SET LOCAL enable_sort = off")
            rows = await tx.fetch_all(_READ, *last, until, instances, READ_MAX)
            found = await _unresolved(tx, [open_hold(row) for row in rows if row["is_wanted"]])
        yield found
        if not rows:
            return
        last = (rows[-1]["deadline_at"], rows[-1]["reservation_id"])


async def _unresolved(tx: Transaction, holds: Sequence[OpenHold]) -> list[OpenHold]:
    """Return those of the holds that have no resolution, in their order."""
    await tx.execute("SET LOCAL plan_cache_mode = force_custom_plan")
    unresolved: set[tuple[UUID, UUID]] = set()
    for day in {hold.admitted_day for hold in holds}:
        of_day = [hold for hold in holds if hold.admitted_day == day]
        rows = await tx.fetch_all(
            _UNRESOLVED,
            day,
            [hold.organization_id for hold in of_day],
            [hold.reservation_id for hold in of_day],
        )
        unresolved |= {(row["organization_id"], row["reservation_id"]) for row in rows}
    return [hold for hold in holds if (hold.organization_id, hold.reservation_id) in unresolved]


HoldT = TypeVar("HoldT", bound=OpenHold)


def by_organization(holds: Sequence[HoldT]) -> Iterator[tuple[OrganizationId, list[HoldT]]]:
    """Group holds by organization, because each has one account to lock."""
    ordered = sorted(holds, key=lambda hold: hold.organization_id)
    for organization_id, of_one in groupby(ordered, key=lambda hold: hold.organization_id):
        yield organization_id, list(of_one)


@asynccontextmanager
async def account_locked(
    database: Database, organization_id: OrganizationId
) -> AsyncGenerator[Transaction]:
    """Lock an account for one transaction; raise `LockTimedOut` after 2 s to not delay others."""
    async with database.transaction() as tx:
        await tx.execute("SELECT set_config('lock_timeout', $1, true)", LOCK_TIMEOUT)
        await tx.execute(
            "SELECT 1 FROM accounts WHERE organization_id = $1 FOR UPDATE", organization_id
        )
        yield tx
