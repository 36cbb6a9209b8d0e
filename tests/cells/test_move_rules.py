"""The states of a move, exhaustively: which step is allowed in which of them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tollhouse.organizations import rules
from tollhouse.organizations.errors import MoveConflict
from tollhouse.organizations.types import MoveState, OrganizationMove

NOW = datetime(2026, 11, 17, 9, tzinfo=UTC)
NEVER = datetime(9999, 12, 31, tzinfo=UTC)
THIS, OTHER = UUID(int=1), UUID(int=2)


def move(state: MoveState, *, seconds: int = 60, move_id: UUID = THIS) -> OrganizationMove:
    until = NOW + timedelta(seconds=seconds)
    return OrganizationMove(id=move_id, state=state, cell="us1", frozen_until=until)


STATES = {
    "none": None,
    "leaving": move(MoveState.LEAVING),
    "leaving, ended": move(MoveState.LEAVING, seconds=0),
    "leaving, another": move(MoveState.LEAVING, move_id=OTHER),
    "moved": move(MoveState.MOVED),
    "moved, another": move(MoveState.MOVED, move_id=OTHER),
    "arriving": move(MoveState.ARRIVING),
    "arriving, another": move(MoveState.ARRIVING, move_id=OTHER),
}
STEPS: dict[str, tuple[Callable[[OrganizationMove | None], object], set[str]]] = {
    "leave": (
        lambda now: rules.leave(now, move_id=OTHER, cell="us1", frozen_until=NOW),
        {"none", "leaving", "leaving, ended", "leaving, another"},
    ),
    "release": (
        lambda now: rules.release(now, move_id=THIS, now=NOW, never=NEVER),
        {"leaving", "moved"},
    ),
    "arrive": (
        lambda now: rules.check_can_arrive(now, exists=True),
        {"moved", "moved, another", "arriving", "arriving, another"},
    ),
    "activate": (lambda now: rules.activate(now, move_id=THIS), {"arriving"}),
    "cancel": (
        lambda now: rules.cancel(now, never=NEVER),
        set(STATES) - {"moved", "moved, another"},
    ),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_allowed_in_its_states_alone(step: str, state: str) -> None:
    run, allowed = STEPS[step]

    if state in allowed:
        run(STATES[state])
    else:
        with pytest.raises(MoveConflict):
            run(STATES[state])


def test_an_organization_that_was_never_here_may_arrive() -> None:
    rules.check_can_arrive(None, exists=False)


def test_a_release_closes_for_good_and_a_second_one_changes_nothing() -> None:
    released = rules.release(STATES["leaving"], move_id=THIS, now=NOW, never=NEVER)

    assert (released.state, released.frozen_until) == (MoveState.MOVED, NEVER)
    assert rules.release(released, move_id=THIS, now=NOW, never=NEVER) == released


def test_a_cancelled_arrival_belongs_to_the_other_cell_again() -> None:
    cancelled = rules.cancel(STATES["arriving"], never=NEVER)

    assert cancelled is not None
    assert (cancelled.state, cancelled.cell) == (MoveState.MOVED, "us1")
    assert rules.cancel(STATES["leaving"], never=NEVER) is None
