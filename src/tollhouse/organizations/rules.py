"""Pure rules for organizations."""

from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import UUID

from tollhouse.organizations.errors import MoveConflict, OrganizationClosed
from tollhouse.organizations.types import (
    MoveState,
    Organization,
    OrganizationMove,
    OrganizationStatus,
)


def with_status(organization: Organization, status: OrganizationStatus) -> Organization:
    """Return the organization with `status`; raise `OrganizationClosed` if that would reopen it."""
    if status is not OrganizationStatus.CLOSED:
        check_open(organization)
    return replace(organization, status=status)


def check_open(organization: Organization) -> None:
    """Raise `OrganizationClosed` if the organization is closed, which is final."""
    if organization.status is OrganizationStatus.CLOSED:
        raise OrganizationClosed


def leave(
    move: OrganizationMove | None, *, move_id: UUID, cell: str, frozen_until: datetime
) -> OrganizationMove:
    """Return the move that freezes the organization, in place of an earlier attempt.

    An earlier attempt can no longer be released, because its ID is gone.
    """
    if move is not None and move.state is not MoveState.LEAVING:
        raise MoveConflict(_WHERE[move.state].format(cell=move.cell))
    return OrganizationMove(
        id=move_id, state=MoveState.LEAVING, cell=cell, frozen_until=frozen_until
    )


def release(
    move: OrganizationMove | None, *, move_id: UUID, now: datetime, never: datetime
) -> OrganizationMove:
    """Return the move that closes the organization here; unchanged if it is closed already.

    Raises `MoveConflict` if the freeze has ended: the organization may have spent since.
    """
    if move is None or move.id != move_id or move.state is MoveState.ARRIVING:
        message = "The organization is not frozen for this move. Export it again."
        raise MoveConflict(message)
    if move.state is MoveState.MOVED:
        return move
    if now >= move.frozen_until:
        message = "The freeze has ended, and the organization is served here. Export it again."
        raise MoveConflict(message)
    return replace(move, state=MoveState.MOVED, frozen_until=never)


def check_can_arrive(move: OrganizationMove | None, *, exists: bool) -> None:
    """Raise `MoveConflict` if an organization that lives here would be overwritten."""
    if exists and (move is None or move.state is MoveState.LEAVING):
        message = "The organization lives in this cell already."
        raise MoveConflict(message)


def activate(move: OrganizationMove | None, *, move_id: UUID) -> None:
    """Raise `MoveConflict` unless this move has arrived here."""
    if move is None or move.id != move_id or move.state is not MoveState.ARRIVING:
        message = "This move has not arrived here. Import it again."
        raise MoveConflict(message)


def cancel(move: OrganizationMove | None, *, never: datetime) -> OrganizationMove | None:
    """Return the move after it was given up, None for an organization that stays here.

    In the cell that it would have moved to, the organization is again that of the other cell.
    """
    if move is None or move.state is MoveState.LEAVING:
        return None
    if move.state is MoveState.ARRIVING:
        return replace(move, state=MoveState.MOVED, frozen_until=never)
    raise MoveConflict(_WHERE[move.state].format(cell=move.cell))


_WHERE: Final = {
    MoveState.MOVED: "The organization has moved to the cell '{cell}'.",
    MoveState.ARRIVING: "The organization is arriving from the cell '{cell}'. Activate it first.",
}
