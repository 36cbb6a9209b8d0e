"""A move of an organization by the operator's commands, which are killed at some steps."""

import asyncio
from pathlib import Path

from tests.cells.cell import Cell, CellCustomer
from tests.support.edges import EdgeProxy
from tollhouse.cli.moves.steps import MoveStep

COMMANDS = {
    "export": (
        *(MoveStep.FREEZE, MoveStep.DRAIN, MoveStep.COPY),
        *(MoveStep.VERIFY_COPY, MoveStep.SEAL),
    ),
    "import": (MoveStep.WRITE, MoveStep.COMPARE, MoveStep.VERIFY, MoveStep.ACKNOWLEDGE),
    "release": (MoveStep.RELEASE, MoveStep.PERMIT),
    "activate": (MoveStep.ACTIVATE,),
}
UNDOABLE = (*COMMANDS["export"], *COMMANDS["import"])
"""The steps after which a move can be given up."""
# Kills and their repetitions all happen within one freeze.
FREEZE_SECONDS = 3600


def _runs(
    mover: CellCustomer, source: Cell, target: Cell, folder: Path
) -> dict[str, tuple[Cell, tuple[str, ...]]]:
    """The commands of a move in their order, each with the cell in which it is run."""
    export = ("org", "export", str(mover.organization_id), str(folder), "--cell", target.name)
    return {
        "export": (source, (*export, "--freeze-seconds", str(FREEZE_SECONDS))),
        "import": (target, ("org", "import", str(folder))),
        "release": (source, ("org", "release", str(folder))),
        "activate": (target, ("org", "activate", str(folder))),
    }


async def move(
    mover: CellCustomer,
    source: Cell,
    target: Cell,
    folder: Path,
    kills: frozenset[MoveStep] = frozenset(),
) -> None:
    """Move an organization. Each command is killed at some steps, and run again."""
    for name, (cell, arguments) in _runs(mover, source, target, folder).items():
        for step in COMMANDS[name]:
            if step in kills:
                await cell.command(*arguments, kill_at=step)
        await cell.command(*arguments)


async def begin_and_undo(
    mover: CellCustomer, source: Cell, target: Cell, folder: Path, step: MoveStep
) -> None:
    """Begin a move, kill its command at `step`, and give the move up."""
    for name, (cell, arguments) in _runs(mover, source, target, folder).items():
        if step in COMMANDS[name]:
            await cell.command(*arguments, kill_at=step)
            break
        await cell.command(*arguments)
    await source.command("org", "cancel-move", str(mover.organization_id))


async def update_routes(edge: EdgeProxy, *cells: Cell) -> None:
    """Give the proxy the routes of all keys whose organizations have moved."""
    printed = await asyncio.gather(
        *(cell.command("org", "routes", "--for", edge.format) for cell in cells)
    )
    await edge.move_keys("".join(lines for _, lines in printed))
