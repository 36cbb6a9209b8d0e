"""The steps of a move to another cell that change the organization's row, audited."""

from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from tollhouse.base.ids import OrganizationId
from tollhouse.organizations import rules
from tollhouse.organizations.errors import OrganizationNotFound
from tollhouse.organizations.types import MoveState, OrganizationMove
from tollhouse.storage import audit
from tollhouse.storage.database import Mutation, Row, Transaction

NEVER: Final = datetime(9999, 12, 31, tzinfo=UTC)
"""When a freeze ends that does not end by itself. The driver reads `infinity` without a zone."""


async def freeze(
    tx: Mutation, *, move_id: UUID, cell: str, frozen_until: datetime
) -> OrganizationMove:
    """Refuse all keys and changes of the organization until a time."""
    before = await _locked(tx, tx.organization_id)
    move = rules.leave(before, move_id=move_id, cell=cell, frozen_until=frozen_until)
    await _save(tx, tx.organization_id, move)
    await _record(tx, "organization.freeze", before, move)
    return move


async def release(
    tx: Transaction, organization_id: OrganizationId, move_id: UUID
) -> OrganizationMove:
    """Close the organization here, so that its new cell may serve it.

    Not audited: the audit log has left with the organization, and goes on in the new cell.
    """
    before = await _locked(tx, organization_id)
    now = await tx.fetch_value("SELECT clock_timestamp()")
    move = rules.release(before, move_id=move_id, now=now, never=NEVER)
    await _save(tx, organization_id, move)
    return move


async def name_arrival(
    tx: Transaction, organization_id: OrganizationId, *, move_id: UUID, cell: str
) -> None:
    """Store which move brought the organization here; `cell` is where it comes from.

    Not audited: the audit log arrives with the organization.
    """
    move = OrganizationMove(id=move_id, state=MoveState.ARRIVING, cell=cell, frozen_until=NEVER)
    await _save(tx, organization_id, move)


async def activate(tx: Mutation, move_id: UUID) -> None:
    """Let the keys of an organization that has arrived work."""
    before = await _locked(tx, tx.organization_id)
    rules.activate(before, move_id=move_id)
    await _save(tx, tx.organization_id, None)
    await _record(tx, "organization.activate", before, None)


async def cancel(tx: Mutation) -> OrganizationMove | None:
    """Give up a move that was not released. Audited where the organization lives."""
    before = await _locked(tx, tx.organization_id)
    move = rules.cancel(before, never=NEVER)
    await _save(tx, tx.organization_id, move)
    if before is None or move is not None:
        tx.unchanged()
        return move
    await _record(tx, "organization.cancel_move", before, move)
    return move


async def retrieve(
    tx: Transaction, organization_id: OrganizationId
) -> tuple[bool, OrganizationMove | None]:
    """Return whether the organization has a row here, and its move."""
    row = await tx.fetch_one(
        """
        SELECT move_id, move_state, move_cell, frozen_until
          FROM organizations
         WHERE id = $1
        """,
        organization_id,
    )
    return row is not None, None if row is None else _move(row)


async def all_moved(  # all organizations: the operator's list
    tx: Transaction,
) -> list[tuple[OrganizationId, str]]:
    """Return the organizations that left this cell, and the cells that they moved to."""
    rows = await tx.fetch_all(
        """
        SELECT id, move_cell
          FROM organizations
         WHERE move_state = 'moved'
         ORDER BY id
        """
    )
    return [(OrganizationId(row["id"]), row["move_cell"]) for row in rows]


async def _locked(tx: Transaction, organization_id: OrganizationId) -> OrganizationMove | None:
    row = await tx.fetch_one(
        """
        SELECT move_id, move_state, move_cell, frozen_until
          FROM organizations
         WHERE id = $1
           FOR UPDATE
        """,
        organization_id,
    )
    if row is None:
        raise OrganizationNotFound
    return _move(row)


async def _save(
    tx: Transaction, organization_id: OrganizationId, move: OrganizationMove | None
) -> None:
    await tx.execute(
        """
        UPDATE organizations
           SET move_id = $2, move_state = $3, move_cell = $4, frozen_until = $5
         WHERE id = $1
        """,
        organization_id,
        None if move is None else move.id,
        None if move is None else move.state,
        None if move is None else move.cell,
        None if move is None else move.frozen_until,
    )


async def _record(
    tx: Mutation, action: str, before: OrganizationMove | None, after: OrganizationMove | None
) -> None:
    await audit.record(
        tx,
        action=action,
        resource=("organization", tx.organization_id),
        before=before,
        after=after,
        is_move=True,
    )


def _move(row: Row) -> OrganizationMove | None:
    if row["move_id"] is None:
        return None
    return OrganizationMove(
        id=row["move_id"],
        state=MoveState(row["move_state"]),
        cell=row["move_cell"],
        frozen_until=row["frozen_until"],
    )
