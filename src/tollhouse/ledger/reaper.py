"""Holds whose requests are gone: first unsettled and still held, then decided.

A timer alone never gives a hold back, since the backend may have billed. Every step locks the
account and looks again, so a settlement that arrives meanwhile wins, and two workers that do
this at once do no harm.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import Final
from uuid import UUID

from tollhouse.base.ids import InstanceId, OrganizationId, ReservationId
from tollhouse.base.money import PicoUsd
from tollhouse.ledger import batches
from tollhouse.ledger.types import Resolution, ResolutionKind, Resolved
from tollhouse.observability import metrics
from tollhouse.storage.database import Database, Row, Transaction
from tollhouse.storage.errors import ConstraintViolated, LockTimedOut, StatementFailed
from tollhouse.storage.instances import DEAD_AFTER_SECONDS

logger = logging.getLogger("tollhouse.ledger")

REAP_EVERY: Final = timedelta(seconds=10)
OVERDUE_AFTER: Final = timedelta(seconds=60)
# A commit that stalls becomes visible late, so what was looked at is looked at again for a while.
CHECKED_AFTER: Final = timedelta(seconds=120)
READ_MAX: Final = 1000
DECIDED_MAX: Final = 128
LOCK_TIMEOUT: Final = "2s"

# The limit is on what is read, not on what is found: a busy day holds millions of resolved holds.
# The last row read comes back in any case and says where to go on.
_READ: Final = """
    SELECT hold.organization_id, hold.admitted_day, hold.reservation_id, hold.deadline_at,
           hold.held_pico, seen.is_wanted
      FROM (SELECT organization_id, admitted_day, reservation_id, deadline_at, instance_id,
                   held_pico,
                   row_number() OVER (ORDER BY deadline_at, reservation_id) AS place
              FROM ledger_entries
             WHERE kind = 'reserve'
               AND (deadline_at, reservation_id) > ($1, $2)
               AND deadline_at <= coalesce($3, timestamptz 'infinity')
             ORDER BY deadline_at, reservation_id
             LIMIT $5) hold
      LEFT JOIN LATERAL (
            SELECT e.phase
              FROM ledger_entries e
             WHERE e.organization_id = hold.organization_id
               AND e.admitted_day = hold.admitted_day
               AND e.reservation_id = hold.reservation_id
               AND e.phase = 1
             LIMIT 1) resolution ON true
     CROSS JOIN LATERAL (
            SELECT resolution.phase IS NULL
                   AND ($4::uuid[] IS NULL OR hold.instance_id = ANY($4)) AS is_wanted) seen
     WHERE seen.is_wanted OR hold.place = $5
     ORDER BY hold.place
"""
_MARK: Final = """
    INSERT INTO unsettled_holds (organization_id, admitted_day, reservation_id, held_pico,
                                 admitted_at, project_id, api_key_id, decide_at)
    SELECT $1, hold.admitted_day, hold.reservation_id, hold.held_pico, hold.admitted_at,
           hold.project_id, hold.api_key_id,
           hold.deadline_at + CASE WHEN hold.bills_without_answer
                                   THEN interval '24 hours' ELSE interval '60 seconds' END
      FROM unnest($2::uuid[], $3::date[]) AS open (id, day)
     CROSS JOIN LATERAL (
            SELECT *
              FROM ledger_entries e
             WHERE e.organization_id = $1
               AND e.admitted_day = open.day
               AND e.reservation_id = open.id
               AND e.phase = 0
             LIMIT 1) hold
      LEFT JOIN LATERAL (
            SELECT e.phase
              FROM ledger_entries e
             WHERE e.organization_id = $1
               AND e.admitted_day = open.day
               AND e.reservation_id = open.id
               AND e.phase = 1
             LIMIT 1) resolution ON true
     WHERE resolution.phase IS NULL
    ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """An open hold, or one whose time of decision has come."""

    organization_id: OrganizationId
    admitted_day: date
    reservation_id: ReservationId
    held_pico_usd: PicoUsd


@dataclass(frozen=True, kw_only=True, slots=True)
class _Moment:
    """One reading of the database's clock, and how far earlier runs have come."""

    now: datetime
    checked_until: datetime


async def run(database: Database) -> None:
    """One round: mark what is overdue or orphaned, decide what is due, count what is left."""
    async with database.transaction() as tx:
        moment = await _moment(tx)
    await _mark_overdue(database, moment)
    await _mark_orphaned(database, moment)
    await _decide_due(database)
    async with database.transaction() as tx:
        metrics.unsettled(await tx.fetch_value("SELECT count(*) FROM unsettled_holds"))


async def _moment(tx: Transaction) -> _Moment:
    row = await tx.fetch_one(
        """
        SELECT clock_timestamp() AS now,
               greatest(checked_until, timestamptz 'epoch') AS checked_until
          FROM reaper_progress
         WHERE is_only
        """
    )
    assert row is not None, "the migration wrote it"
    return _Moment(now=row["now"], checked_until=row["checked_until"])


async def _mark_overdue(database: Database, moment: _Moment) -> None:
    """A hold past its deadline is unsettled even if its worker lives."""
    is_whole = True
    async for found in _open_holds(
        database, after=moment.checked_until, until=moment.now - OVERDUE_AFTER, instances=None
    ):
        is_whole = await _mark(database, found) and is_whole
    if is_whole:
        async with database.transaction() as tx:
            await tx.execute(
                "UPDATE reaper_progress SET checked_until = greatest(checked_until, $1)"
                " WHERE is_only",
                moment.now - CHECKED_AFTER,
            )


async def _mark_orphaned(database: Database, moment: _Moment) -> None:
    """A dead worker's holds are unsettled at once; what is older the other look has seen."""
    dead = await _dead_instances(database)
    if not dead:
        return
    is_whole = True
    async for found in _open_holds(
        database, after=moment.checked_until, until=None, instances=dead
    ):
        is_whole = await _mark(database, found) and is_whole
    if is_whole:
        await _note_reaped(database, dead, moment.now)


async def _dead_instances(database: Database) -> list[InstanceId]:
    """Those that were not reaped since their last heartbeat: one may die, come back, and die."""
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


async def _open_holds(
    database: Database,
    *,
    after: datetime,
    until: datetime | None,
    instances: Sequence[InstanceId] | None,
) -> AsyncIterator[list[_Found]]:
    """In the order of their deadlines, in batches."""
    last: tuple[datetime, UUID] = (after, UUID(int=2**128 - 1))
    while True:
        async with database.transaction() as tx:
            # On a young partition the planner would sort the whole range for every batch of it.
            await tx.execute("SET LOCAL enable_sort = off")
            rows = await tx.fetch_all(_READ, *last, until, instances, READ_MAX)
        yield [_found(row) for row in rows if row["is_wanted"]]
        if not rows:
            return
        last = (rows[-1]["deadline_at"], rows[-1]["reservation_id"])


async def _mark(database: Database, found: Sequence[_Found]) -> bool:
    """Account by account; false if one of them stayed locked, for the next round to try again."""
    is_whole = True
    for organization_id, holds in _by_organization(found):
        try:
            marked = await _mark_one(database, organization_id, holds)
        except LockTimedOut:
            is_whole = False
            logger.warning("account_locked", extra={"organization_id": str(organization_id)})
            continue
        if marked:
            logger.warning(
                "holds_unsettled",
                extra={"organization_id": str(organization_id), "count": marked},
            )
    return is_whole


async def _mark_one(
    database: Database, organization_id: OrganizationId, holds: Sequence[_Found]
) -> int:
    async with _account_locked(database, organization_id) as tx:
        return await tx.execute(
            _MARK,
            organization_id,
            [hold.reservation_id for hold in holds],
            [hold.admitted_day for hold in holds],
        )


async def _decide_due(database: Database) -> None:
    """Without evidence nothing more can be proven: nothing is posted, the house bears the rest."""
    after: tuple[datetime, UUID] | None = None
    while rows := await _due(database, after):
        for organization_id, holds in _by_organization([_found(row) for row in rows]):
            try:
                await _decide_apart(database, organization_id, holds)
            except LockTimedOut:
                logger.warning("account_locked", extra={"organization_id": str(organization_id)})
        after = (rows[-1]["decide_at"], rows[-1]["reservation_id"])


async def _due(database: Database, after: tuple[datetime, UUID] | None) -> Sequence[Row]:
    return await database.fetch_all(
        """
        SELECT organization_id, admitted_day, reservation_id, held_pico, decide_at
          FROM unsettled_holds
         WHERE decide_at <= clock_timestamp()
           AND (decide_at, reservation_id) > ($1, $2)
         ORDER BY decide_at, reservation_id
         LIMIT $3
        """,
        *(after or (datetime.fromtimestamp(0, UTC), UUID(int=0))),
        DECIDED_MAX,
    )


async def _decide_apart(
    database: Database, organization_id: OrganizationId, holds: Sequence[_Found]
) -> None:
    """What the database refuses as a whole is tried one by one, so that one hold harms no other."""
    try:
        await _decide(database, organization_id, holds)
    except (ConstraintViolated, StatementFailed):
        if len(holds) > 1:
            for hold in holds:
                await _decide_apart(database, organization_id, [hold])
            return
        metrics.resolution_set_aside()
        logger.exception("decision_refused", extra={"reservation_id": str(holds[0].reservation_id)})


async def _decide(
    database: Database, organization_id: OrganizationId, holds: Sequence[_Found]
) -> None:
    resolutions = [
        Resolution(
            organization_id=organization_id,
            reservation_id=hold.reservation_id,
            admitted_day=hold.admitted_day,
            kind=ResolutionKind.ABSORB,
        )
        for hold in holds
    ]
    async with _account_locked(database, organization_id) as tx:
        outcomes = await batches.settle(tx, organization_id, resolutions)
    for hold, outcome in zip(holds, outcomes, strict=True):
        metrics.hold_resolved(ResolutionKind.ABSORB, outcome.name.lower())
        if outcome is Resolved.NOW:
            metrics.unknown_absorbed(hold.held_pico_usd)
            logger.error(
                "unknown_absorbed",
                extra={
                    "organization_id": str(organization_id),
                    "reservation_id": str(hold.reservation_id),
                    "amount_pico_usd": hold.held_pico_usd,
                },
            )


@asynccontextmanager
async def _account_locked(
    database: Database, organization_id: OrganizationId
) -> AsyncGenerator[Transaction]:
    """An account that somebody keeps locked must not stop the work on all others."""
    async with database.transaction() as tx:
        await tx.execute("SELECT set_config('lock_timeout', $1, true)", LOCK_TIMEOUT)
        await tx.execute(
            "SELECT 1 FROM accounts WHERE organization_id = $1 FOR UPDATE", organization_id
        )
        yield tx


def _by_organization(
    found: Sequence[_Found],
) -> Iterator[tuple[OrganizationId, list[_Found]]]:
    ordered = sorted(found, key=lambda hold: hold.organization_id)
    for organization_id, holds in groupby(ordered, key=lambda hold: hold.organization_id):
        yield organization_id, list(holds)


def _found(row: Row) -> _Found:
    return _Found(
        organization_id=OrganizationId(row["organization_id"]),
        admitted_day=row["admitted_day"],
        reservation_id=ReservationId(row["reservation_id"]),
        held_pico_usd=PicoUsd(row["held_pico"]),
    )
