"""Resolve unsettled holds that are due: post the provable minimum and write off the rest."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from tollhouse.base.ids import OrganizationId, ReservationId
from tollhouse.base.money import PicoUsd
from tollhouse.ledger import batches, provable
from tollhouse.ledger.open_holds import OpenHold, account_locked, by_organization
from tollhouse.ledger.types import Resolution, ResolutionKind, ResolutionResult
from tollhouse.observability import ledger_metrics, metrics
from tollhouse.observability.ledger_metrics import OperatorAccount
from tollhouse.storage.database import Database, Row
from tollhouse.storage.errors import ConstraintViolated, LockTimedOut, StatementFailed

logger = logging.getLogger("tollhouse.ledger")

DECIDED_MAX: Final = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class _DueHold(OpenHold):
    """An unsettled hold, and its resolution at the provable minimum."""

    resolution: Resolution


async def write_off_due(database: Database) -> None:
    """Post the provable minimum of all due holds; the operator pays for the rest.

    The holds of a frozen organization wait; those of one that moved are decided in its new cell.
    """
    after: tuple[datetime, UUID] | None = None
    while rows := await _due(database, after):
        for organization_id, holds in by_organization([_due_hold(row) for row in rows]):
            try:
                await _write_off_apart(database, organization_id, holds)
            except LockTimedOut:
                logger.warning("account_locked", extra={"organization_id": str(organization_id)})
        after = (rows[-1]["decide_at"], rows[-1]["reservation_id"])


async def _due(  # all organizations: one job
    database: Database, after: tuple[datetime, UUID] | None
) -> Sequence[Row]:
    return await database.fetch_all(
        """
        SELECT organization_id, admitted_day, reservation_id, held_pico, decide_at,
               provable_charge, delivered_tokens, is_estimated
          FROM unsettled_holds
         WHERE decide_at <= clock_timestamp()
           AND NOT EXISTS (
                SELECT FROM accounts a
                 WHERE a.organization_id = unsettled_holds.organization_id
                   AND a.frozen_until > clock_timestamp())
           AND (decide_at, reservation_id) > ($1, $2)
         ORDER BY decide_at, reservation_id
         LIMIT $3
        """,
        *(after or (datetime.fromtimestamp(0, UTC), UUID(int=0))),
        DECIDED_MAX,
    )


async def _write_off_apart(
    database: Database, organization_id: OrganizationId, holds: Sequence[_DueHold]
) -> None:
    """Write off holds together; if the database refuses, one by one, so one blocks no other."""
    try:
        await _write_off_together(database, organization_id, holds)
    except (ConstraintViolated, StatementFailed):
        if len(holds) > 1:
            for hold in holds:
                await _write_off_apart(database, organization_id, [hold])
            return
        ledger_metrics.resolution_set_aside()
        logger.exception("decision_refused", extra={"reservation_id": str(holds[0].reservation_id)})


async def _write_off_together(
    database: Database, organization_id: OrganizationId, holds: Sequence[_DueHold]
) -> None:
    resolutions = [hold.resolution for hold in holds]
    async with account_locked(database, organization_id) as tx:
        outcomes = await batches.settle(tx, resolutions)
    for hold, outcome in zip(holds, outcomes, strict=True):
        metrics.hold_resolved(ResolutionKind.WRITE_OFF, outcome.name.lower())
        if outcome is ResolutionResult.NOW:
            _log_written_off(hold)


def _due_hold(row: Row) -> _DueHold:
    return _DueHold(
        organization_id=OrganizationId(row["organization_id"]),
        admitted_day=row["admitted_day"],
        reservation_id=ReservationId(row["reservation_id"]),
        held_pico_usd=PicoUsd(row["held_pico"]),
        resolution=provable.resolution_of(row),
    )


def _log_written_off(hold: _DueHold) -> None:
    unknown_pico_usd = hold.held_pico_usd - hold.resolution.charge.total_pico_usd
    ledger_metrics.operator_pays(OperatorAccount.UNKNOWN, unknown_pico_usd)
    if hold.resolution.operator_pays is not None:
        ledger_metrics.operator_paid(hold.resolution.operator_pays)
    logger.error(
        "hold_written_off",
        extra={
            "organization_id": str(hold.organization_id),
            "reservation_id": str(hold.reservation_id),
            "amount_pico_usd": unknown_pico_usd,
        },
    )
