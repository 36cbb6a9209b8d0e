"""Organizations move under load, commands are killed at each step, and a cell is lost.

Every answer must be charged exactly once, in the cell where its organization lives at the end.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.cells.cell import Cell, CellCustomer, customer, two_cells
from tests.cells.traffic import History, calling
from tests.ledger.invariants import assert_conserved
from tests.support import seeds
from tests.support.edges import EdgeProxy, EdgeStarter, nginx_edge
from tests.support.upstream import upstream_process
from tollhouse.cli.moves.steps import MoveStep

ORGANIZATIONS = int(os.environ.get("TOLLHOUSE_CELL_ORGANIZATIONS", "4"))
MOVES = int(os.environ.get("TOLLHOUSE_CELL_MOVES", "1"))
KILLS = int(os.environ.get("TOLLHOUSE_CELL_KILLS", "2"))
"""At how many steps of a move its command is killed; there are 12."""
COMMANDS = {
    "export": (
        *(MoveStep.FREEZE, MoveStep.DRAIN, MoveStep.COPY),
        *(MoveStep.VERIFY_COPY, MoveStep.SEAL),
    ),
    "import": (MoveStep.WRITE, MoveStep.COMPARE, MoveStep.VERIFY, MoveStep.ACKNOWLEDGE),
    "release": (MoveStep.RELEASE, MoveStep.PERMIT),
    "activate": (MoveStep.ACTIVATE,),
}


async def move(
    mover: CellCustomer, source: Cell, target: Cell, folder: Path, kills: frozenset[MoveStep]
) -> None:
    """Move an organization. Each command is killed at some steps, and run again."""
    # Kills and their repetitions all happen within one freeze.
    export = (
        *("org", "export", str(mover.organization_id), str(folder)),
        *("--cell", target.name, "--freeze-seconds", "3600"),
    )
    runs = {
        "export": (source, export),
        "import": (target, ("org", "import", str(folder))),
        "release": (source, ("org", "release", str(folder))),
        "activate": (target, ("org", "activate", str(folder))),
    }
    for name, (cell, arguments) in runs.items():
        for step in COMMANDS[name]:
            if step in kills:
                await cell.command(*arguments, kill_at=step)
        await cell.command(*arguments)


async def routes(edge: EdgeProxy, *cells: Cell) -> None:
    """Give the proxy the routes of all keys whose organizations have moved."""
    lines = [(await cell.command("org", "routes", "--for", edge.format))[1] for cell in cells]
    await edge.move_keys("".join(lines))


async def posted(cell: Cell, owner: CellCustomer) -> list[UUID]:
    rows = await cell.database.fetch_all(
        "SELECT reservation_id FROM ledger_entries WHERE organization_id = $1 AND kind = 'post'",
        owner.organization_id,
    )
    return [row["reservation_id"] for row in rows]


async def assert_charged_once(cell: Cell, history: History) -> None:
    """Nothing that was answered is missing, and nothing is charged twice."""
    charged = await posted(cell, history.customer)
    assert len(charged) == len(set(charged))
    assert history.answered <= set(charged)


def draws() -> Iterator[frozenset[MoveStep]]:
    random = seeds.chance("cells")
    while True:
        yield frozenset(random.sample(list(MoveStep), KILLS))


@pytest.mark.clock
@pytest.mark.parametrize("start", [nginx_edge])
async def test_moves_and_the_loss_of_a_cell_cost_no_answer(
    start: EdgeStarter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kills = draws()
    with upstream_process() as upstream:
        async with two_cells(tmp_path, [upstream]) as (eu1, us1):
            homes = [eu1, us1] * (ORGANIZATIONS // 2)
            owners = [await customer(home, f"customer {n}") for n, home in enumerate(homes)]
            lives = dict(zip(owners, homes, strict=True))
            movers = [owner for owner in owners if lives[owner] is eu1][:MOVES]
            async with (
                start(tmp_path, eu1.port, us1.port) as edge,
                calling(edge, owners) as histories,
            ):
                for number, mover in enumerate(movers):
                    folder = tmp_path / f"move-{number}"
                    await move(mover, eu1, us1, folder, next(kills))
                    lives[mover] = us1
                    await routes(edge, eu1, us1)
                    await histories[mover].is_served_again()
                killed_freezes = [max(histories[mover].freezes) for mover in movers]
                back = movers[0]
                await move(back, us1, eu1, tmp_path / "back", frozenset())
                lives[back] = eu1
                await routes(edge, eu1, us1)
                await histories[back].is_served_again()

                # The reload of the proxy closes kept connections, which is no loss of a cell.
                for history in histories.values():
                    await history.is_served_again()
                before = {owner: history.statuses.copy() for owner, history in histories.items()}
                await eu1.kill()
                for owner, home in lives.items():
                    if home is us1:
                        await histories[owner].is_served_again()
                during = {
                    owner: history.statuses - before[owner] for owner, history in histories.items()
                }
                await eu1.restore()
                for history in histories.values():
                    await history.is_served_again()

            # The other cell did not notice.
            assert all(set(during[owner]) <= {"200"} for owner in owners if lives[owner] is us1)
            assert any(set(during[owner]) - {"200"} for owner in owners if lives[owner] is eu1)
            for owner, history in histories.items():
                await assert_charged_once(lives[owner], history)
            for cell in (eu1, us1):
                await assert_conserved(cell.database)

    with capsys.disabled():
        sys.stdout.write(
            f"\n{edge.format}: {ORGANIZATIONS} organizations, {MOVES} moved, {KILLS} kills each,"
            f" {sum(len(history.answered) for history in histories.values())} answers,"
            f" 0 lost, 0 double; longest freeze with kills {max(killed_freezes):.1f} s,"
            f" without {histories[back].freezes[-1]:.1f} s\n"
        )
