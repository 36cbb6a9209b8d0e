"""Which archived days a command reads, and where they are."""

from datetime import date, datetime

import click

from tollhouse.archive import service
from tollhouse.archive.errors import ArchiveNotConfigured
from tollhouse.archive.files import ArchiveFiles
from tollhouse.archive.types import ArchivedTable, DayManifest
from tollhouse.cli.arguments import DAY, F
from tollhouse.cli.session import Session
from tollhouse.settings import Settings


def range_options(command: F) -> F:
    """Add the options `since` and `until`: days, both included, or None."""
    for option in (
        click.option("--to", "until", type=DAY, help="The last day. When left out, the newest."),
        click.option("--from", "since", type=DAY, help="The first day. When left out, the oldest."),
    ):
        command = option(command)
    return command


def files_of(settings: Settings) -> ArchiveFiles:
    """Return the files of the configured archive. Raises `ArchiveNotConfigured`."""
    if settings.archive.url is None:
        raise ArchiveNotConfigured
    return ArchiveFiles(settings.archive.url)


async def archived(
    operator: Session,
    since: datetime | None,
    until: datetime | None,
    *,
    tables: tuple[ArchivedTable, ...] = tuple(ArchivedTable),
) -> list[DayManifest]:
    """Return the archived days in a range, by table and day."""
    first = date.min if since is None else since.date()
    last = date.max if until is None else until.date()
    return [
        day for table in tables for day in await service.find(operator.database, table, first, last)
    ]
