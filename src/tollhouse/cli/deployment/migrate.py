"""`tollhouse migrate`: expand the schema for this version, or contract it after the rollout."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Literal, Protocol

import click
from msgspec import Struct
from rich.progress import Progress

from tollhouse import settings as configuration
from tollhouse.cli import output
from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.connecting import connected, when_reached
from tollhouse.settings import Settings
from tollhouse.storage import migrate, revisions


class Migrated(Struct, frozen=True, kw_only=True):
    """The revisions that were applied, none if the schema was up to date, and where it is now."""

    object: Literal["migration"] = "migration"
    applied: list[str]
    revision: str
    contracted: str


class Pending(Struct, frozen=True, kw_only=True):
    """The revisions of the database, and the one that this version needs."""

    object: Literal["migration.check"] = "migration.check"
    revision: str | None
    contracted: str | None
    needed: str
    pending: bool
    contract_pending: bool


def progress_listener(bars: Progress) -> Callable[[migrate.Progress], None]:
    """Return a listener for `migrate` that moves one progress bar, named by the text that runs."""
    task = bars.add_task("schema", total=None)

    def update(step: migrate.Progress) -> None:
        bars.update(task, description=step.name, completed=step.number, total=step.total)

    return update


@click.command("migrate", epilog=example("tollhouse migrate --check || tollhouse migrate"))
@click.option("--check", is_flag=True, help="Change nothing. Exit with 1 if a revision is pending.")
@click.option(
    "--contract",
    is_flag=True,
    help="Remove what only older releases need, once none of their workers runs.",
)
@json_option
@click.pass_context
def command(context: click.Context, *, check: bool, contract: bool, as_json: bool) -> None:
    """Bring the database's schema up to date.

    Workers of the previous release go on and can start again until you run it with --contract.
    All pending revisions run in one transaction: either all of them are applied, or none. A
    database that is away is awaited for `database.start_seconds`.
    """
    settings = configuration.load(context.obj)
    if check:
        found = asyncio.run(_pending(settings))
        output.show(found, as_json=as_json)
        context.exit(1 if found.pending or (contract and found.contract_pending) else 0)
    with output.progress_bars(as_json=as_json) as bars:
        step = partial(_migrate, settings, bars, migrate.contract if contract else migrate.migrate)
        migrated = asyncio.run(when_reached(settings.database, step))
    output.show(migrated, as_json=as_json)
    if not migrated.applied:
        output.say("The schema was up to date. Nothing was changed.", as_json=as_json)


class _Migration(Protocol):
    """Either step of a migration."""

    async def __call__(self, url: str, *, show: Callable[[migrate.Progress], None]) -> list[str]:
        """Apply the step; return the revisions that were applied."""
        ...


async def _migrate(settings: Settings, bars: Progress, apply: _Migration) -> Migrated:
    # Connect first, because errors of `connected` say what to do.
    async with connected(settings.database) as database:
        applied = await apply(settings.database.url, show=progress_listener(bars))
        found = await revisions.current(database)
    return Migrated(
        applied=applied, revision=found.expanded or "none", contracted=found.contracted or "none"
    )


async def _pending(settings: Settings) -> Pending:
    async with connected(settings.database) as database:
        found = await revisions.current(database)
    revisions.refuse_newer(found.contracted)
    needed = revisions.head()
    return Pending(
        revision=found.expanded,
        contracted=found.contracted,
        needed=needed,
        pending=(found.expanded or "") < needed,
        contract_pending=found.contracted != found.expanded,
    )
