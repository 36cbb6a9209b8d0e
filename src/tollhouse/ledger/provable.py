"""The provable minimum cost of an unsettled hold: the usage that its worker counted.

It is stored when the worker gives up the hold, with the model that was called, and posted if no
usage is known when it is due.
"""

from typing import Final

import msgspec

from tollhouse.ledger.open_holds import account_locked
from tollhouse.ledger.types import Charge, OperatorPays, Resolution, ResolutionKind
from tollhouse.storage.database import Database, Row

_RECORD: Final = """
    INSERT INTO unsettled_holds (
           organization_id, admitted_day, reservation_id, held_pico, admitted_at, project_id,
           api_key_id, decide_at, provable_charge, delivered_tokens, is_estimated)
    SELECT $1, hold.admitted_day, hold.reservation_id, hold.held_pico, hold.admitted_at,
           hold.project_id, hold.api_key_id,
           hold.deadline_at + CASE WHEN hold.bills_without_answer
                                   THEN interval '24 hours' ELSE interval '60 seconds' END,
           $4::jsonb, $5, $6
      FROM ledger_find_entries($1, $2, $3, 0) hold
      LEFT JOIN ledger_find_entries($1, $2, $3, 1) resolution ON resolution.item = hold.item
     WHERE resolution.item IS NULL
    ON CONFLICT (organization_id, admitted_day, reservation_id) DO UPDATE
       SET provable_charge = EXCLUDED.provable_charge,
           delivered_tokens = EXCLUDED.delivered_tokens,
           is_estimated = EXCLUDED.is_estimated
"""


class _Called(msgspec.Struct, frozen=True):
    """Which model a stored charge has the prices of; None is the hold's own."""

    model: str | None = None


async def record(database: Database, minimum: Resolution) -> None:
    """Mark the hold as unsettled and store its minimum; do nothing if it is already resolved."""
    async with account_locked(database, minimum.organization_id) as tx:
        await tx.execute(
            _RECORD,
            minimum.organization_id,
            [minimum.reservation_id],
            [minimum.admitted_day],
            _stored(minimum),
            minimum.delivered_tokens,
            minimum.is_estimated,
        )


def resolution_of(row: Row) -> Resolution:
    """Return the write-off of an unsettled hold, which charges its provable minimum.

    Without a minimum the worker was lost, and its count of delivered tokens with it.
    """
    stored: str | None = row["provable_charge"]
    return Resolution(
        organization_id=row["organization_id"],
        reservation_id=row["reservation_id"],
        admitted_day=row["admitted_day"],
        kind=ResolutionKind.WRITE_OFF,
        charge=Charge() if stored is None else msgspec.json.decode(stored, type=Charge),
        delivered_tokens=row["delivered_tokens"],
        is_estimated=row["is_estimated"],
        operator_pays=OperatorPays.WORKER_LOST if stored is None else None,
        model=None if stored is None else msgspec.json.decode(stored, type=_Called).model,
    )


def _stored(minimum: Resolution) -> str:
    fields = msgspec.to_builtins(minimum.charge) | msgspec.to_builtins(_Called(minimum.model))
    return msgspec.json.encode(fields).decode()
