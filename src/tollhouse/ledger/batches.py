"""The batches of the inference path: one statement that settles and admits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tollhouse.base.ids import InstanceId
from tollhouse.base.money import PicoUsd
from tollhouse.ledger.types import AdmissionVerdict, Hold, Resolution, ResolutionResult
from tollhouse.storage.database import Database, Row, Transaction

# One statement is one round trip and one commit. Settlements run first, so that the same batch
# can reserve what they give back. Sets start slowly, so one or two items do without them.
_APPLY: Final = """
    SELECT outcome AS code, NULL::numeric AS available_pico, NULL::numeric AS held_pico
      FROM ledger_settle_batch($1, $2)
     UNION ALL
    SELECT verdict, available_pico, held_pico
      FROM ledger_admit_batch($3, $4, $5, $2)
"""
# A pair by sets takes 1.4 times as long (decision 0019).
_APPLY_PAIR: Final = """
    SELECT ledger_settle_one($1, $2) AS code, NULL::numeric AS available_pico,
           NULL::numeric AS held_pico
     UNION ALL
    SELECT verdict, available_pico, held_pico
      FROM ledger_admit_one($3, $4, $5)
"""
_ADMIT_ONE: Final = """
    SELECT verdict AS code, available_pico, held_pico
      FROM ledger_admit_one($1, $2, $3)
"""
_SETTLE_ONE: Final = "SELECT ledger_settle_one($1, true) AS code"
_SETTLE: Final = "SELECT outcome AS code FROM ledger_settle_batch($1, false)"


@dataclass(frozen=True, kw_only=True, slots=True)
class AdmissionDecision:
    """The database's decision about one hold; the amounts explain a refusal."""

    code: int
    available_pico_usd: PicoUsd
    held_pico_usd: PicoUsd


_ADMITTED: Final = AdmissionDecision(
    code=AdmissionVerdict.ADMITTED, available_pico_usd=PicoUsd(0), held_pico_usd=PicoUsd(0)
)


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchResult:
    """One answer per item, in order; None for an item whose account was locked."""

    resolved: list[ResolutionResult | None]
    decisions: list[AdmissionDecision | None]


async def apply(  # all organizations: items of one, or independent items of many
    database: Database,
    resolutions: Sequence[Resolution],
    holds: Sequence[Hold],
    *,
    instance_id: InstanceId,
    is_retry: bool,
    skips_locked: bool,
) -> BatchResult:
    """Resolve, then admit; skip the items of locked accounts, or wait for the locks.

    Items that wait for a lock are all of one organization.
    """
    settled = list(map(_resolution_row, resolutions))
    admitted = list(map(hold_row, holds))
    rest = instance_id, is_retry
    match len(settled), len(admitted):
        case 1, 0 if skips_locked:
            rows = await database.fetch_all(_SETTLE_ONE, settled[0])
        case 0, 1 if skips_locked:
            rows = await database.fetch_all(_ADMIT_ONE, admitted[0], *rest)
        case 1, 1:
            rows = await database.fetch_all(
                _APPLY_PAIR, settled[0], skips_locked, admitted[0], *rest
            )
        case _:
            rows = await database.fetch_all(_APPLY, settled, skips_locked, admitted, *rest)
    return BatchResult(
        resolved=[_resolved(row) for row in rows[: len(resolutions)]],
        decisions=[_decision(row) for row in rows[len(resolutions) :]],
    )


async def settle(tx: Transaction, resolutions: Sequence[Resolution]) -> list[ResolutionResult]:
    """Resolve holds in the caller's transaction, outside the inference path."""
    rows = await tx.fetch_all(_SETTLE, list(map(_resolution_row, resolutions)))
    return [ResolutionResult(row["code"]) for row in rows]


def _resolution_row(resolution: Resolution) -> tuple[object, ...]:
    """Return a resolution as the database's type `ledger_resolution`."""
    charge = resolution.charge
    return (
        resolution.organization_id,
        resolution.reservation_id,
        resolution.admitted_day,
        resolution.kind,
        resolution.excess_pico_usd,
        charge.input_tokens,
        charge.cached_input_tokens,
        charge.output_tokens,
        charge.images,
        charge.input_pico_usd,
        charge.cached_input_pico_usd,
        charge.output_pico_usd,
        charge.image_pico_usd,
        charge.request_pico_usd,
        resolution.delivered_tokens,
        resolution.is_estimated,
        resolution.operator_rule,
        resolution.model,
        charge.cache_write_tokens,
        charge.cache_write_pico_usd,
    )


def hold_row(hold: Hold) -> tuple[object, ...]:
    """Return a hold as the database's type `ledger_hold`."""
    return (
        hold.organization_id,
        hold.reservation_id,
        hold.admitted_at,
        hold.deadline_at,
        hold.amount_pico_usd,
        hold.project_id,
        hold.api_key_id,
        hold.model,
        hold.price_revision,
        hold.bills_without_answer,
    )


def _resolved(row: Row) -> ResolutionResult | None:
    code = row["code"]
    return None if code == AdmissionVerdict.SKIPPED else ResolutionResult(code)


def _decision(row: Row) -> AdmissionDecision | None:
    code = row["code"]
    if code == AdmissionVerdict.ADMITTED:
        return _ADMITTED
    if code == AdmissionVerdict.SKIPPED:
        return None
    return AdmissionDecision(
        code=code,
        available_pico_usd=PicoUsd(int(row["available_pico"])),
        held_pico_usd=PicoUsd(int(row["held_pico"])),
    )
