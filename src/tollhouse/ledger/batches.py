"""The batches of the inference path: one call of the functions that move money."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tollhouse.base.ids import InstanceId, OrganizationId
from tollhouse.base.money import PicoUsd
from tollhouse.ledger.counters import separate_counter_keys, shared_counter_keys
from tollhouse.ledger.types import Hold, Resolution, Resolved, Verdict, to_pico_usd
from tollhouse.storage.database import Database, Row, Transaction

# One statement is one round trip and one commit. Settlements stand first and so run first:
# what they give back can be reserved in the same batch.
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
class Decision:
    """What the database said of one hold; amounts explain a refusal."""

    code: int
    available_pico_usd: PicoUsd
    held_pico_usd: PicoUsd


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchResult:
    """One answer per item, in order. Nothing stands for an item that was skipped as locked."""

    resolved: list[Resolved | None]
    decisions: list[Decision | None]


async def apply(
    database: Database,
    organization_id: OrganizationId,
    resolutions: Sequence[Resolution],
    holds: Sequence[Hold],
    *,
    instance_id: InstanceId,
    is_retry: bool,
) -> BatchResult:
    """Resolve, then admit, for one organization; waits for its account."""
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
    """Resolve and admit for organizations with one item each; skips those locked elsewhere."""
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
) -> list[Resolved]:
    """Resolve in the caller's transaction; for decisions, which are no batch of the batcher."""
    rows = await tx.fetch_all(_SETTLE, organization_id, *_settle_columns(resolutions))
    return [Resolved(row["outcome"]) for row in rows]


def _settle_columns(resolutions: Sequence[Resolution]) -> tuple[list[object], ...]:
    charges = [resolution.charge for resolution in resolutions]
    return (
        [resolution.reservation_id for resolution in resolutions],
        [resolution.admitted_day for resolution in resolutions],
        [resolution.kind.value for resolution in resolutions],
        [resolution.excess_pico_usd for resolution in resolutions],
        [charge.input_tokens for charge in charges],
        [charge.cached_input_tokens for charge in charges],
        [charge.output_tokens for charge in charges],
        [charge.images for charge in charges],
        [charge.input_pico_usd for charge in charges],
        [charge.cached_input_pico_usd for charge in charges],
        [charge.output_pico_usd for charge in charges],
        [charge.image_pico_usd for charge in charges],
        [charge.request_pico_usd for charge in charges],
        [resolution.delivered_tokens for resolution in resolutions],
        [resolution.is_estimated for resolution in resolutions],
        [resolution.operator_rule for resolution in resolutions],
    )


def _admit_columns(holds: Sequence[Hold]) -> tuple[list[object], ...]:
    return (
        [hold.reservation_id for hold in holds],
        [hold.admitted_at for hold in holds],
        [hold.deadline_at for hold in holds],
        [hold.amount_pico_usd for hold in holds],
        [hold.project_id for hold in holds],
        [hold.api_key_id for hold in holds],
        [hold.model for hold in holds],
        [hold.price_revision for hold in holds],
        [hold.bills_without_answer for hold in holds],
    )


def _result(rows: Sequence[Row], resolutions: int) -> BatchResult:
    return BatchResult(
        resolved=[_resolved(row["code"]) for row in rows[:resolutions]],
        decisions=[_decision(row) for row in rows[resolutions:]],
    )


def _resolved(code: int) -> Resolved | None:
    return None if code == Verdict.SKIPPED else Resolved(code)


def _decision(row: Row) -> Decision | None:
    if row["code"] == Verdict.SKIPPED:
        return None
    return Decision(
        code=row["code"],
        available_pico_usd=to_pico_usd(row["available_pico"]),
        held_pico_usd=to_pico_usd(row["held_pico"]),
    )
