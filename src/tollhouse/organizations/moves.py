"""The steps of a move to another cell that change the organization's row."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from tollhouse.base.ids import OrganizationId
from tollhouse.organizations.errors import OrganizationNotFound
from tollhouse.organizations.types import MoveState, OrganizationMove
from tollhouse.storage import audit
from tollhouse.storage.database import Mutation, Transaction

NEVER: Final = datetime(9999, 12, 31, tzinfo=UTC)
"""When a freeze ends that does not end by itself. The driver reads `infinity` without a zone."""

Step = Callable[[OrganizationMove | None], OrganizationMove | None]
"""A rule that returns the move after a step, or raises `MoveConflict`."""


async def change(tx: Mutation, action: str, step: Step) -> OrganizationMove | None:
    """Take a step where the organization lives, audited; return the move after it."""
    before, after = await change_elsewhere(tx, tx.organization_id, step)
    if before == after or (after is not None and after.state is MoveState.MOVED):
        tx.unchanged()
    else:
        await audit.record(
            tx,
            action=action,
            resource=("organization", tx.organization_id),
            before=before,
            after=after,
            is_move=True,
        )
    return after


async def change_elsewhere(
    tx: Transaction, organization_id: OrganizationId, step: Step
) -> tuple[OrganizationMove | None, OrganizationMove | None]:
    """Take a step in the cell that does not have the audit log; return the move before and after.

    The log has left with the organization, or has not arrived yet.
    """
    exists, before = await retrieve(tx, organization_id)
    if not exists:
        raise OrganizationNotFound
    after = step(before)
    await tx.execute(
        """
        UPDATE organizations
           SET move_id = $2, move_state = $3, move_cell = $4, frozen_until = $5
         WHERE id = $1
        """,
        organization_id,
        None if after is None else after.id,
        None if after is None else after.state,
        None if after is None else after.cell,
        None if after is None else after.frozen_until,
    )
    return before, after


async def retrieve(
    tx: Transaction, organization_id: OrganizationId
) -> tuple[bool, OrganizationMove | None]:
    """Lock the organization; return whether it has a row here, and its move."""
    row = await tx.fetch_one(
        """
        SELECT move_id, move_state, move_cell, frozen_until
          FROM organizations
         WHERE id = $1
           FOR UPDATE
        """,
        organization_id,
    )
    if row is None or row["move_id"] is None:
        return row is not None, None
    return True, OrganizationMove(
        id=row["move_id"],
        state=MoveState(row["move_state"]),
        cell=row["move_cell"],
        frozen_until=row["frozen_until"],
    )


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
