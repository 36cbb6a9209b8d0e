"""`tollhouse org export`, `import`, `release`, `activate`, `cancel-move` and `routes`."""

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeVar
from uuid import UUID

import click
from msgspec import Struct

from tollhouse.base.ids import OrganizationId
from tollhouse.cli import output, session
from tollhouse.cli.arguments import IDENTIFIER, example, json_option
from tollhouse.cli.moves import arriving, leaving
from tollhouse.cli.moves.documents import MoveFolder
from tollhouse.cli.moves.routes import RENDERERS, KeyRoute
from tollhouse.cli.moves.steps import MoveStep
from tollhouse.cli.session import Session
from tollhouse.keys import portable as keys
from tollhouse.organizations import moves
from tollhouse.settings import CELL_PATTERN

FREEZE_SECONDS: Final = 60
FREEZE_SECONDS_MAX: Final = 3600

F = TypeVar("F", bound=Callable[..., Any])


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


def _folder_argument(command: F) -> F:
    kind: click.ParamType[Path] = click.Path(file_okay=False, path_type=Path)
    return click.argument("folder", type=kind)(command)


def _cell(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if re.fullmatch(CELL_PATTERN, value) is None:
        message = "A cell has 1 to 16 lower-case letters and digits, and begins with a letter."
        raise click.BadParameter(message)
    return value


def _announce(step: MoveStep) -> None:
    click.echo(f"step: {step}", err=True)


@click.command(epilog=example("tollhouse org export ORGANIZATION_ID move --cell us1"))
@click.argument("organization", type=IDENTIFIER)
@_folder_argument
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
        manifest = await leaving.export(
            operator,
            owner.id,
            cell=cell,
            folder=MoveFolder(folder),
            freeze_seconds=freeze_seconds,
            announce=_announce,
        )
        rows = sum(table.rows for table in manifest.tables)
        return _shown(manifest.move_id, owner.id, "leaving", cell, rows=rows)

    output.show(session.run(settings_path, work), as_json=as_json)


@click.command("import", epilog=example("tollhouse org import move"))
@_folder_argument
@json_option
@click.pass_obj
def import_(settings_path: Path, *, folder: Path, as_json: bool) -> None:
    """Store an exported organization in this cell, still frozen, and write a receipt."""

    async def work(operator: Session) -> ShownMove:
        receipt = await arriving.receive(operator, MoveFolder(folder), _announce)
        rows = sum(table.rows for table in receipt.tables)
        return _shown(receipt.move_id, receipt.organization_id, "arriving", None, rows=rows)

    output.show(session.run(settings_path, work), as_json=as_json)


@click.command(epilog=example("tollhouse org release move"))
@_folder_argument
@json_option
@click.pass_obj
def release(settings_path: Path, *, folder: Path, as_json: bool) -> None:
    """Close an exported organization in this cell, after its receipt was compared.

    From now on only the new cell can serve it.
    """

    async def work(operator: Session) -> ShownMove:
        released = await leaving.release(operator, MoveFolder(folder), _announce)
        return _shown(released.move_id, released.organization_id, "moved", None)

    output.show(session.run(settings_path, work), as_json=as_json)


@click.command(epilog=example("tollhouse org activate move"))
@_folder_argument
@json_option
@click.pass_obj
def activate(settings_path: Path, *, folder: Path, as_json: bool) -> None:
    """Serve an imported organization in this cell, after the old one released it."""

    async def work(operator: Session) -> ShownMove:
        manifest = await arriving.activate(operator, MoveFolder(folder), _announce)
        frozen = operator.clock.now() - datetime.fromisoformat(manifest.frozen_at)
        return _shown(
            manifest.move_id,
            manifest.organization_id,
            "active",
            manifest.to_cell,
            frozen_seconds=round(frozen.total_seconds(), 3),
        )

    output.show(session.run(settings_path, work), as_json=as_json)


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
        move = await leaving.cancel(operator, owner.id)
        if move is None:
            return _shown(None, owner.id, "active", None)
        return _shown(move.id, owner.id, move.state.value, move.cell)

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


def _shown(
    move_id: UUID | None,
    organization_id: UUID | OrganizationId,
    state: str,
    cell: str | None,
    *,
    rows: int | None = None,
    frozen_seconds: float | None = None,
) -> ShownMove:
    return ShownMove(
        id="" if move_id is None else str(move_id),
        organization_id=str(organization_id),
        state=state,
        cell=cell,
        rows=rows,
        frozen_seconds=frozen_seconds,
    )


COMMANDS: Final = (export, import_, release, activate, cancel_move, routes)
