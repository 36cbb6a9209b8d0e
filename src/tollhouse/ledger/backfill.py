"""Past usage that an operator enters: credit and its use together, on the day of the usage."""

from datetime import UTC, datetime, time, timedelta
from typing import Final
from uuid import UUID

from tollhouse.base.ids import GrantId, InstanceId, ReservationId, time_ordered_uuid
from tollhouse.ledger import batches, operations, partitions
from tollhouse.ledger.errors import DayIsClosed, DayNotPast, SpenderNotFound
from tollhouse.ledger.types import (
    GrantKind,
    Hold,
    HoldDecision,
    PastUsage,
    Resolution,
    ResolutionKind,
    ResolutionResult,
)
from tollhouse.storage.database import Database, Mutation

# Past usage has no worker that admitted it, and no price list.
NO_INSTANCE: Final = InstanceId(UUID(int=0))
NO_PRICES: Final = 0


async def prepare(database: Database, usage: PastUsage, *, now: datetime, entry_days: int) -> None:
    """Validate past usage and create the partition of its day.

    Raises `AmountOutOfRange`, `DayNotPast` or `DayIsClosed`. A day older than `entry_days` counts
    as closed even if it never had entries: the next retention run would close it before all usage
    is entered.
    """
    operations.require_amount(usage.charge.total_pico_usd)
    today = now.astimezone(UTC).date()
    if usage.day > today:
        raise DayNotPast(day=usage.day)
    if usage.day < today - timedelta(days=entry_days):
        raise DayIsClosed(day=usage.day)
    async with database.transaction() as tx:
        if await partitions.is_closed(tx, usage.day):
            raise DayIsClosed(day=usage.day)
    await partitions.make_day(database, usage.day)


async def enter(tx: Mutation, usage: PastUsage, *, reason: str) -> Resolution:
    """Grant, hold and settle the cost of past usage on a day that `prepare` accepted.

    Available credit does not change; caps and reports count the usage.
    """
    operations.require_amount(usage.charge.total_pico_usd)
    if await partitions.is_closed(tx, usage.day):
        raise DayIsClosed(day=usage.day)
    await operations.lock_account(tx)
    await _require_spender(tx, usage)
    hold = _hold(tx, usage)
    await _add_credit(tx, hold, reason)
    await _count(tx, hold)
    await _insert(tx, hold)
    resolution = Resolution(
        organization_id=tx.organization_id,
        reservation_id=hold.reservation_id,
        admitted_day=hold.admitted_day,
        kind=ResolutionKind.POST,
        charge=usage.charge,
        delivered_tokens=None,
    )
    outcomes = await batches.settle(tx, [resolution])
    assert outcomes == [ResolutionResult.NOW], "its hold was entered just before"
    await operations.record_decision(
        tx, resolution, HoldDecision.BACKFILL, reason=reason, before=None
    )
    return resolution


def _hold(tx: Mutation, usage: PastUsage) -> Hold:
    begin = datetime.combine(usage.day, time.min, UTC)
    return Hold(
        organization_id=tx.organization_id,
        reservation_id=ReservationId(time_ordered_uuid()),
        project_id=usage.project_id,
        api_key_id=usage.api_key_id,
        model=usage.model,
        price_revision=NO_PRICES,
        amount_pico_usd=usage.charge.total_pico_usd,
        admitted_at=begin,
        deadline_at=begin,
        bills_without_answer=False,
    )


async def _require_spender(tx: Mutation, usage: PastUsage) -> None:
    """Raise `SpenderNotFound` if the project has no such key, active or not."""
    found = await tx.fetch_value(
        "SELECT 1 FROM project_keys WHERE organization_id = $1 AND id = $2 AND project_id = $3",
        tx.organization_id,
        usage.api_key_id,
        usage.project_id,
    )
    if found is None:
        raise SpenderNotFound


async def _add_credit(tx: Mutation, hold: Hold, reason: str) -> None:
    """Grant and reserve the cost of the usage; free usage needs no credit."""
    if hold.amount_pico_usd == 0:
        return
    await tx.execute(
        """
        INSERT INTO credit_grants (organization_id, id, kind, amount_pico, reason,
                                   actor_type, actor_id, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """,
        tx.organization_id,
        GrantId(time_ordered_uuid()),
        GrantKind.BACKFILL,
        hold.amount_pico_usd,
        reason,
        tx.authority.actor.type,
        tx.authority.actor.id,
        tx.now,
    )
    await tx.execute(
        """
        UPDATE accounts
           SET credit_pico = credit_pico + $2,
               reserved_pico = reserved_pico + $2,
               ceiling_pico = greatest(credit_pico, settled_pico + reserved_pico) + $2,
               is_alerted = is_alerted AND settled_pico * 100 >= (credit_pico + $2) * 80
         WHERE organization_id = $1
        """,
        tx.organization_id,
        hold.amount_pico_usd,
    )


async def _count(tx: Mutation, hold: Hold) -> None:
    """Reserve the cost in the counters, even above a cap; the ceilings are raised to fit."""
    row = batches.hold_row(hold)
    await tx.execute("SELECT ledger_begin_windows($1)", row)
    await tx.execute("SELECT ledger_reserve_in_windows($1, true)", row)


async def _insert(tx: Mutation, hold: Hold) -> None:
    await tx.execute(
        """
        INSERT INTO ledger_entries (
            organization_id, admitted_day, reservation_id, phase, kind, is_backfill, admitted_at,
            deadline_at, project_id, api_key_id, model, price_revision, instance_id,
            bills_without_answer, held_pico)
        VALUES ($1, $2, $3, 0, 'reserve', true, $4, $4, $5, $6, $7, $8, $9, false, $10)
        """,
        tx.organization_id,
        hold.admitted_day,
        hold.reservation_id,
        hold.admitted_at,
        hold.project_id,
        hold.api_key_id,
        hold.model,
        hold.price_revision,
        NO_INSTANCE,
        hold.amount_pico_usd,
    )
