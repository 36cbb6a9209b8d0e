"""`tollhouse archive`: move old days into files, list them, compare them, and query them."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

import click

from tollhouse.archive import service
from tollhouse.archive.types import ArchivedTable, DayManifest
from tollhouse.cli import output, session
from tollhouse.cli.archive import reading
from tollhouse.cli.archive.query import query
from tollhouse.cli.archive.views import (
    DAY_COLUMNS,
    DIFFERENCE_COLUMNS,
    ArchiveVerification,
    ShownDayDifference,
    ShownDays,
    shown_day,
)
from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.session import Session
from tollhouse.ledger import partitions as ledger_days


@click.group("archive", epilog=example("tollhouse archive run"))
def command() -> None:
    """Move old days into Parquet files, and read them.

    A day of records is old after `activity.record_days`, a day of ledger entries after
    `ledger.entry_days`.
    """


command.add_command(query)


@command.command(epilog=example("tollhouse archive run"))
@json_option
@click.pass_obj
def run(settings_path: Path, *, as_json: bool) -> None:
    """Write all old days into files, compare them with the database, and drop them from it.

    Run it once a day. A run that was killed goes on where it ended. A day with an open hold stays.
    """
    with output.progress_bars(as_json=as_json) as bars:
        task = bars.add_task("archiving", total=None)

        def update(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        moved = session.run(settings_path, lambda operator: _run(operator, update))
    if moved or as_json:
        body = ShownDays(data=[shown_day(day) for day in moved])
        output.show_list(body, DAY_COLUMNS, as_json=as_json)
    else:
        click.echo("No day is old enough to be archived.")


@command.command("list", epilog=example("tollhouse archive list --from 2026-08-01"))
@reading.range_options
@json_option
@click.pass_obj
def list_(
    settings_path: Path, *, since: datetime | None, until: datetime | None, as_json: bool
) -> None:
    """List the archived days, oldest first."""
    found = session.run(settings_path, lambda operator: reading.archived(operator, since, until))
    output.show_list(
        ShownDays(data=[shown_day(day) for day in found]), DAY_COLUMNS, as_json=as_json
    )


@command.command(epilog=example("tollhouse archive verify --json"))
@reading.range_options
@json_option
@click.pass_context
def verify(
    context: click.Context, *, since: datetime | None, until: datetime | None, as_json: bool
) -> None:
    """Read all files, and compare them with what was recorded when their days were dropped.

    Ledger entries are also compared with the sums of their closed days. The exit code is 1 if
    something differs.
    """
    found = session.run(context.obj, partial(_verify, since=since, until=until))
    if found.sound and not as_json:
        days = output.counted(found.days, "day", "days")
        click.echo(f"Read {found.rows} rows of {days}. They have the recorded sums.")
    else:
        output.show_list(found, DIFFERENCE_COLUMNS, as_json=as_json)
    context.exit(0 if found.sound else 1)


async def _run(operator: Session, update: Callable[[int, int], None]) -> list[DayManifest]:
    files = reading.files_of(operator.settings)
    days_kept = {
        ArchivedTable.REQUESTS: operator.settings.activity.record_days,
        ArchivedTable.LEDGER_ENTRIES: operator.settings.ledger.entry_days,
    }
    due = [
        partition
        for table, days in days_kept.items()
        for partition in await service.older_than(operator.database, table, days_kept=days)
    ]
    close = partial(ledger_days.close, operator.database)
    moved: list[DayManifest] = []
    for done, partition in enumerate(due):
        update(done, len(due))
        is_ledger = partition.parent == ArchivedTable.LEDGER_ENTRIES
        day = await service.archive(
            operator.database,
            files,
            partition,
            prepare=close if is_ledger else None,
        )
        if day is not None:
            moved.append(day)
    return moved


async def _verify(
    operator: Session, *, since: datetime | None, until: datetime | None
) -> ArchiveVerification:
    files = reading.files_of(operator.settings)
    days = await reading.archived(operator, since, until)
    differences: list[ShownDayDifference] = []
    for day in days:
        words = await service.difference(operator.database, files, day)
        if words is not None:
            differences.append(
                ShownDayDifference(table=day.table, day=day.day.isoformat(), difference=words)
            )
    return ArchiveVerification(
        sound=not differences,
        days=len(days),
        rows=sum(day.total.rows for day in days),
        data=differences,
    )
