"""`tollhouse org export`, `import`, `release`, `activate`, `cancel-move` and `routes`."""

import re
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Final, Literal
from uuid import UUID

import click
from msgspec import Struct
from msgspec.structs import replace

from tollhouse.cli import output, session
from tollhouse.cli.arguments import IDENTIFIER, example, json_option
from tollhouse.cli.moves import mover
from tollhouse.cli.moves.documents import Manifest, MoveFolder, Receipt, Release
from tollhouse.cli.moves.routes import RENDERERS, KeyRoute
from tollhouse.cli.moves.steps import MoveStep
from tollhouse.cli.session import Session
from tollhouse.keys import lookup as keys
from tollhouse.organizations import moves
from tollhouse.settings import CELL_PATTERN

FREEZE_SECONDS: Final = 60
FREEZE_SECONDS_MAX: Final = 3600
FOLDER: Final[click.ParamType[Path]] = click.Path(file_okay=False, path_type=Path)


class ShownMove(Struct, frozen=True, kw_only=True):
    """A move, and the step that ended."""

    id: str
    object: Literal["organization.move"] = "organization.move"
    organization_id: str
    state: str
    cell: str | None
    rows: int | None = None
    frozen_seconds: float | None = None


class KeyRouteList(Struct, frozen=True, kw_only=True):
    """The routes of all moved keys."""

    object: Literal["list"] = "list"
    data: list[KeyRoute]


def _cell(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if re.fullmatch(CELL_PATTERN, value) is None:
        message = "A cell has 1 to 16 lower-case letters and digits, and begins with a letter."
        raise click.BadParameter(message)
    return value


def _announce(step: MoveStep) -> None:
    click.echo(f"step: {step}", err=True)


def _shown(document: Manifest | Receipt | Release, state: str) -> ShownMove:
    rows = None if isinstance(document, Release) else sum(table.rows for table in document.tables)
    return ShownMove(
        id=str(document.move_id),
        organization_id=str(document.organization_id),
        state=state,
        cell=document.to_cell if isinstance(document, Manifest) else None,
        rows=rows,
    )


@click.command(epilog=example("tollhouse org export ORGANIZATION_ID move --cell us1"))
@click.argument("organization", type=IDENTIFIER)
@click.argument("folder", type=FOLDER)
@click.option("--cell", required=True, callback=_cell, help="The cell that it moves to.")
@click.option(
    "--freeze-seconds",
    type=click.IntRange(1, FREEZE_SECONDS_MAX),
    default=FREEZE_SECONDS,
    help="When the freeze ends by itself unless the organization is released.",
)
@json_option
@click.pass_obj
def export(
    settings_path: Path,
    *,
    organization: UUID,
    folder: Path,
    cell: str,
    freeze_seconds: int,
    as_json: bool,
) -> None:
    """Freeze an organization and copy it to a folder, for another cell.

    Its requests get 503 from now on; those under way are waited for. The folder has digests of
    keys and no key.
    """

    async def work(operator: Session) -> ShownMove:
        owner = await operator.organization(organization)
        manifest = await mover.export(
            operator,
            owner.id,
            cell=cell,
            folder=MoveFolder(folder),
            freeze_seconds=freeze_seconds,
            announce=_announce,
        )
        return _shown(manifest, "leaving")

    output.show(session.run(settings_path, work), as_json=as_json)


def _step(
    name: str, text: str, work: Callable[[Session, MoveFolder], Awaitable[ShownMove]]
) -> click.Command:
    """Return the command of a step that needs nothing but the folder."""

    @click.command(name, help=text, epilog=example(f"tollhouse org {name} move"))
    @click.argument("folder", type=FOLDER)
    @json_option
    @click.pass_obj
    def command(settings_path: Path, *, folder: Path, as_json: bool) -> None:
        done = session.run(settings_path, lambda operator: work(operator, MoveFolder(folder)))
        output.show(done, as_json=as_json)

    return command


async def _import(operator: Session, folder: MoveFolder) -> ShownMove:
    return _shown(await mover.receive(operator, folder, _announce), "arriving")


async def _release(operator: Session, folder: MoveFolder) -> ShownMove:
    return _shown(await mover.release(operator, folder, _announce), "moved")


async def _activate(operator: Session, folder: MoveFolder) -> ShownMove:
    manifest = await mover.activate(operator, folder, _announce)
    frozen = operator.clock.now() - datetime.fromisoformat(manifest.frozen_at)
    seconds = round(frozen.total_seconds(), 3)
    return replace(_shown(manifest, "active"), rows=None, frozen_seconds=seconds)


@click.command("cancel-move", epilog=example("tollhouse org cancel-move ORGANIZATION_ID"))
@click.argument("organization", type=IDENTIFIER)
@json_option
@click.pass_obj
def cancel_move(settings_path: Path, *, organization: UUID, as_json: bool) -> None:
    """Give up a move that was not released.

    In the old cell the organization is served again, in the new one its copy stays closed.
    """

    async def work(operator: Session) -> ShownMove:
        owner = await operator.organization(organization)
        move = await mover.cancel(operator, owner.id)
        state = "active" if move is None else move.state.value
        shown = ShownMove(id="", organization_id=str(owner.id), state=state, cell=None)
        return shown if move is None else replace(shown, id=str(move.id), cell=move.cell)

    output.show(session.run(settings_path, work), as_json=as_json)


@click.command(epilog=example("tollhouse org routes --for nginx"))
@click.option(
    "--for",
    "proxy",
    type=click.Choice(list(RENDERERS)),
    required=True,
    help="The proxy whose form the lines have.",
)
@json_option
@click.pass_obj
def routes(settings_path: Path, *, proxy: str, as_json: bool) -> None:
    """Print the routes of keys whose organizations have moved from this cell to others.

    A route has the shown parts of a key: its prefix, 4 characters and the last 4.
    """

    async def work(operator: Session) -> list[KeyRoute]:
        async with operator.database.transaction() as tx:
            return [
                KeyRoute(key=key, cell=cell)
                for organization_id, cell in await moves.all_moved(tx)
                for key in await keys.redacted_values(tx, organization_id)
            ]

    found = session.run(settings_path, work)
    if as_json:
        output.show(KeyRouteList(data=found), as_json=True)
        return
    for route in found:
        click.echo(RENDERERS[proxy](route))


import_ = _step(
    "import", "Store an exported organization here, still frozen; write a receipt.", _import
)
release = _step(
    "release",
    "Close an exported organization here, after its receipt was compared.\n\n"
    "From now on only the new cell can serve it.",
    _release,
)
activate = _step(
    "activate", "Serve an imported organization, after the old cell released it.", _activate
)
