"""`tollhouse migrate`: bring the schema to the revision that this version needs."""

import asyncio
from collections.abc import Callable
from typing import Literal

import click
from msgspec import Struct
from rich.progress import Progress, TaskID

from tollhouse import settings as configuration
from tollhouse.cli import output
from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.connecting import connected
from tollhouse.settings import Settings
from tollhouse.storage import revisions, schema


class Migrated(Struct, frozen=True, kw_only=True):
    """The revisions that were applied; none if the schema was up to date."""

    object: Literal["migration"] = "migration"
    applied: list[str]
    revision: str


class Pending(Struct, frozen=True, kw_only=True):
    """The current revision and the one that this version needs."""

    object: Literal["migration.check"] = "migration.check"
    revision: str | None
    needed: str
    pending: bool


def progress_listener(bars: Progress) -> Callable[[schema.Progress], None]:
    """Return a listener for `schema.migrate` that moves one progress bar per revision."""
    tasks: dict[str, TaskID] = {}

    def update(step: schema.Progress) -> None:
        if step.revision not in tasks:
            tasks[step.revision] = bars.add_task(
                f"revision {step.revision}", total=step.statement_count
            )
        bars.update(tasks[step.revision], completed=step.statement_number)

    return update


@click.command("migrate", epilog=example("tollhouse migrate --check || tollhouse migrate"))
@click.option("--check", is_flag=True, help="Change nothing. Exit with 1 if a revision is pending.")
@json_option
@click.pass_context
def command(context: click.Context, *, check: bool, as_json: bool) -> None:
    """Bring the database's schema up to date.

    All pending revisions run in one transaction: either all of them are applied, or none.
    """
    settings = configuration.load(context.obj)
    if check:
        found = asyncio.run(_pending(settings))
        output.show(found, as_json=as_json)
        context.exit(1 if found.pending else 0)
    with output.progress_bars(as_json=as_json) as bars:
        applied = asyncio.run(_migrate(settings, bars))
    output.show(Migrated(applied=applied, revision=revisions.head()), as_json=as_json)
    if not applied:
        output.say("The schema was up to date. Nothing was changed.", as_json=as_json)


async def _migrate(settings: Settings, bars: Progress) -> list[str]:
    # Connect first, because errors of `connected` say what to do.
    async with connected(settings.database):
        return await schema.migrate(settings.database.url, show=progress_listener(bars))


async def _pending(settings: Settings) -> Pending:
    async with connected(settings.database) as database:
        revision = await revisions.current(database)
    revisions.refuse_newer(revision)
    needed = revisions.head()
    return Pending(revision=revision, needed=needed, pending=revision != needed)
