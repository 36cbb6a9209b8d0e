"""The batches of the inference path: one statement that settles and admits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tollhouse.base.ids import InstanceId, OrganizationId
from tollhouse.base.money import PicoUsd
from tollhouse.ledger.rules import separate_counter_keys, shared_counter_keys
from tollhouse.ledger.types import AdmissionVerdict, Hold, Resolution, ResolutionResult
from tollhouse.storage.database import Database, Row, Transaction

_SETTLE_COLUMNS: Final = 16
_ADMIT_COLUMNS: Final = 9

# One statement is one round trip and one commit. Settlements run first, so that the same batch
# can reserve what they give back.
_APPLY: Final = """
    SELECT outcome AS code, NULL::numeric AS available_pico, NULL::numeric AS held_pico
      FROM ledger_settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
                         $15, $16, $17)
     UNION ALL
    SELECT verdict, available_pico, held_pico
      FROM ledger_admit($1, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28,
                        $29, $30, $31, $32)
"""
_APPLY_MIXED: Final = """
    SELECT outcome AS code, NULL::numeric AS available_pico, NULL::numeric AS held_pico
      FROM ledger_settle_mixed($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
                               $15, $16, $17)
     UNION ALL
    SELECT verdict, available_pico, held_pico
      FROM ledger_admit_mixed($18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29,
                              $30, $31, $32)
"""
_SETTLE: Final = """
    SELECT outcome
      FROM ledger_settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
                         $15, $16, $17)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class AdmissionDecision:
    """The database's decision about one hold; the amounts explain a refusal."""

    code: int
    available_pico_usd: PicoUsd
    held_pico_usd: PicoUsd


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchResult:
    """One answer per item, in order; None for an item whose account was locked."""

    resolved: list[ResolutionResult | None]
    decisions: list[AdmissionDecision | None]


async def apply(
    database: Database,
    organization_id: OrganizationId,
    resolutions: Sequence[Resolution],
    holds: Sequence[Hold],
    *,
    instance_id: InstanceId,
    is_retry: bool,
) -> BatchResult:
    """Resolve, then admit, for one organization; wait for the lock of its account."""
    keys = shared_counter_keys(holds)
    rows = await database.fetch_all(
        _APPLY,
        organization_id,
        *_settle_columns(resolutions),
        instance_id,
        is_retry,
        *_admit_columns(holds),
        keys.scopes,
        keys.scope_ids,
        keys.windows,
        keys.positions,
    )
    return _result(rows, len(resolutions))


async def apply_mixed(  # all organizations: independent items of cold ones share a commit
    database: Database,
    resolutions: Sequence[Resolution],
    holds: Sequence[Hold],
    *,
    instance_id: InstanceId,
    is_retry: bool,
) -> BatchResult:
    """Resolve and admit for organizations with one item each; skip locked accounts."""
    keys = separate_counter_keys(holds)
    rows = await database.fetch_all(
        _APPLY_MIXED,
        [resolution.organization_id for resolution in resolutions],
        *_settle_columns(resolutions),
        [hold.organization_id for hold in holds],
        instance_id,
        is_retry,
        *_admit_columns(holds),
        keys.scopes,
        keys.scope_ids,
        keys.windows,
    )
    return _result(rows, len(resolutions))


async def settle(
    tx: Transaction, organization_id: OrganizationId, resolutions: Sequence[Resolution]
) -> list[ResolutionResult]:
    """Resolve holds in the caller's transaction, outside the inference path."""
    rows = await tx.fetch_all(_SETTLE, organization_id, *_settle_columns(resolutions))
    return [ResolutionResult(row["outcome"]) for row in rows]


def _settle_columns(resolutions: Sequence[Resolution]) -> Sequence[Sequence[object]]:
    """Return the arrays that `ledger_settle` takes, in the order of its parameters."""
    rows: list[tuple[object, ...]] = []
    for resolution in resolutions:
        charge = resolution.charge
        rows.append(
            (
                resolution.reservation_id,
                resolution.admitted_day,
                resolution.kind.value,
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
            )
        )
    return list(zip(*rows, strict=True)) or [()] * _SETTLE_COLUMNS


def _admit_columns(holds: Sequence[Hold]) -> Sequence[Sequence[object]]:
    """Return the arrays that `ledger_admit` takes, in the order of its parameters."""
    rows = [
        (
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
        for hold in holds
    ]
    return list(zip(*rows, strict=True)) or [()] * _ADMIT_COLUMNS


def _result(rows: Sequence[Row], resolutions: int) -> BatchResult:
    return BatchResult(
        resolved=[
            None if row["code"] == AdmissionVerdict.SKIPPED else ResolutionResult(row["code"])
            for row in rows[:resolutions]
        ],
        decisions=[
            None
            if row["code"] == AdmissionVerdict.SKIPPED
            else AdmissionDecision(
                code=row["code"],
                available_pico_usd=PicoUsd(int(row["available_pico"])),
                held_pico_usd=PicoUsd(int(row["held_pico"])),
            )
            for row in rows[resolutions:]
        ],
    )
