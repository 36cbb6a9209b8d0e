"""An operator's decisions about unsettled holds, in the caller's transaction."""

import logging
from dataclasses import asdict, replace
from typing import Final

from tollhouse.base.ids import OrganizationId, ReservationId
from tollhouse.base.money import PicoUsd
from tollhouse.ledger import batches
from tollhouse.ledger.errors import AmountOutOfRange, HoldNotFound
from tollhouse.ledger.types import (
    ZERO,
    Charge,
    HoldDecision,
    Resolution,
    ResolutionKind,
    ResolutionResult,
    UnsettledHold,
)
from tollhouse.observability import ledger_metrics
from tollhouse.observability.ledger_metrics import OperatorAccount
from tollhouse.storage import audit
from tollhouse.storage.database import Mutation, Row, Transaction

logger = logging.getLogger("tollhouse.ledger")

AMOUNT_MAX: Final = 2**63 - 1


async def page_of_unsettled(
    tx: Transaction,
    organization_id: OrganizationId,
    *,
    limit: int,
    reservation_id: ReservationId | None = None,
) -> list[UnsettledHold]:
    """Return unsettled holds, oldest first, or only the one with this ID."""
    rows = await tx.fetch_all(
        """
        WITH page AS MATERIALIZED (
            SELECT organization_id, reservation_id, admitted_day, admitted_at, project_id,
                   api_key_id, held_pico, unsettled_at, decide_at
              FROM unsettled_holds
             WHERE organization_id = $1
               AND ($2::uuid IS NULL OR reservation_id = $2)
             ORDER BY admitted_day, reservation_id
             LIMIT $3
        )
        SELECT page.*, hold.model, hold.instance_id
          FROM page
          JOIN ledger_find_entries(
                $1,
                ARRAY(SELECT reservation_id FROM page ORDER BY admitted_day, reservation_id),
                ARRAY(SELECT admitted_day FROM page ORDER BY admitted_day, reservation_id),
                0) hold USING (admitted_day, reservation_id)
         ORDER BY page.admitted_day, page.reservation_id
        """,
        organization_id,
        reservation_id,
        limit,
    )
    return [_unsettled(row) for row in rows]


async def settle(
    tx: Mutation, reservation_id: ReservationId, *, used: Charge, amount: PicoUsd, reason: str
) -> Resolution:
    """Settle an unsettled hold at `amount`; the operator pays what exceeds the hold.

    The amount is stored as the price of the request, beside the quantities in `used`.
    """
    require_amount(amount)
    hold = await _held(tx, reservation_id)
    posted = min(amount, hold.amount_pico_usd)
    resolution = Resolution(
        organization_id=tx.organization_id,
        reservation_id=reservation_id,
        admitted_day=hold.admitted_day,
        kind=ResolutionKind.POST,
        charge=replace(used, request_pico_usd=posted),
        excess_pico_usd=PicoUsd(amount - posted),
        delivered_tokens=None,
    )
    return await _decide(tx, hold, resolution, HoldDecision.SETTLE, reason)


async def release(tx: Mutation, reservation_id: ReservationId, *, reason: str) -> Resolution:
    """Void the hold of a request that is known to have cost nothing."""
    hold = await _held(tx, reservation_id)
    resolution = Resolution(
        organization_id=tx.organization_id,
        reservation_id=reservation_id,
        admitted_day=hold.admitted_day,
        kind=ResolutionKind.VOID,
        delivered_tokens=None,
    )
    return await _decide(tx, hold, resolution, HoldDecision.RELEASE, reason)


def require_amount(amount: PicoUsd) -> None:
    """Raise AmountOutOfRange for an amount that an entry cannot store."""
    if not ZERO <= amount <= AMOUNT_MAX:
        raise AmountOutOfRange


def record_operator_cost(resolution: Resolution) -> None:
    """Count what the operator pays, and log an excess: a bound was too low, or a usage is wrong.

    To be called once the resolution is committed.
    """
    if resolution.operator_rule is not None:
        ledger_metrics.operator_paid(resolution.operator_rule)
    if resolution.excess_pico_usd > 0:
        ledger_metrics.operator_pays(OperatorAccount.EXCESS, resolution.excess_pico_usd)
        logger.error(
            "charge_exceeds_hold",
            extra={
                "reservation_id": str(resolution.reservation_id),
                "amount_pico_usd": resolution.excess_pico_usd,
            },
        )


async def lock_account(tx: Mutation) -> None:
    """Lock the account, which every change of money does first."""
    await tx.execute(
        "SELECT 1 FROM accounts WHERE organization_id = $1 FOR UPDATE", tx.organization_id
    )


async def record_decision(
    tx: Mutation,
    resolution: Resolution,
    decided: HoldDecision,
    *,
    reason: str,
    before: object | None,
) -> None:
    """Store who decided and why, and the mutation's audit row."""
    await tx.execute(
        """
        INSERT INTO operator_decisions (organization_id, admitted_day, reservation_id, kind,
                                        reason, actor_type, actor_id, decided_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """,
        tx.organization_id,
        resolution.admitted_day,
        resolution.reservation_id,
        decided,
        reason,
        tx.authority.actor.type,
        tx.authority.actor.id,
        tx.now,
    )
    await audit.record(
        tx,
        action=f"ledger.{decided}",
        resource=("reservation", resolution.reservation_id),
        before=before,
        after=asdict(resolution) | {"reason": reason},
    )


async def _held(tx: Mutation, reservation_id: ReservationId) -> UnsettledHold:
    await lock_account(tx)
    found = await page_of_unsettled(tx, tx.organization_id, limit=1, reservation_id=reservation_id)
    if not found:
        raise HoldNotFound
    return found[0]


async def _decide(
    tx: Mutation, hold: UnsettledHold, resolution: Resolution, decided: HoldDecision, reason: str
) -> Resolution:
    outcomes = await batches.settle(tx, [resolution])
    assert outcomes == [ResolutionResult.NOW], "the account is locked, and the hold was open"
    await record_decision(tx, resolution, decided, reason=reason, before=hold)
    return resolution


def _unsettled(row: Row) -> UnsettledHold:
    return UnsettledHold(
        organization_id=row["organization_id"],
        reservation_id=row["reservation_id"],
        admitted_day=row["admitted_day"],
        admitted_at=row["admitted_at"],
        project_id=row["project_id"],
        api_key_id=row["api_key_id"],
        model=row["model"],
        amount_pico_usd=PicoUsd(row["held_pico"]),
        instance_id=row["instance_id"],
        unsettled_at=row["unsettled_at"],
        decide_at=row["decide_at"],
    )
