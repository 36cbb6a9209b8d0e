"""`tollhouse export`: costs in the FOCUS format, and days of costs and records as Parquet."""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import IO, Final, Literal
from uuid import UUID

import click
from msgspec import Struct

from tollhouse import nightly_export
from tollhouse.archive.exporting import ExportRange
from tollhouse.base.clock import unix_seconds
from tollhouse.cli import output, session
from tollhouse.cli.archive import reading
from tollhouse.cli.archive.views import DAY_COLUMNS, ShownDays, shown_day
from tollhouse.cli.arguments import INSTANT, example, json_option, organization_option
from tollhouse.cli.ledger.costs import DEFAULT_DAYS, midnight
from tollhouse.cli.session import Session
from tollhouse.reports.focus_export import FocusExport, FocusRange
from tollhouse.reports.types import CostFilter
from tollhouse.storage.replica import ReplicaReads

STANDARD_OUTPUT: Final = Path("-")


class WrittenFile(Struct, frozen=True, kw_only=True):
    """A file of costs. `unsettled_requests` have no final cost yet, and are not in the file."""

    object: Literal["export.file"] = "export.file"
    file: str
    rows: int
    unsettled_requests: int


@click.group("export", epilog=example("tollhouse export focus costs.csv"))
def command() -> None:
    """Write costs in the FOCUS format, and days of costs and records as Parquet."""


@command.command(epilog=example("tollhouse export focus costs.csv --from 2026-08-01"))
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@organization_option
@click.option("--from", "since", type=INSTANT, help="Start, in UTC. When left out, 30 days ago.")
@click.option("--to", "until", type=INSTANT, help="End, in UTC. When left out, now.")
@json_option
@click.pass_obj
def focus(
    settings_path: Path,
    *,
    file: Path,
    organization: UUID | None,
    since: datetime | None,
    until: datetime | None,
    as_json: bool,
) -> None:
    """Write the costs of one organization as CSV in the format FOCUS 1.2; `-` is standard output.

    Days that the range cuts contain the requests that were admitted within it.
    """

    async def write(operator: Session) -> WrittenFile:
        owner = await operator.organization(organization)
        if operator.replica is not None:
            await operator.replica.settle()
        now = operator.clock.now()
        start = since or midnight(now) - timedelta(days=DEFAULT_DAYS)
        export = FocusExport(
            ReplicaReads(operator.database, operator.replica).run,
            owner.id,
            FocusRange(
                start=unix_seconds(start),
                end=None if until is None else unix_seconds(until),
                only=CostFilter(),
            ),
            provider_name=operator.settings.exports.provider_name,
            now=now,
        )
        lines = 0
        with _complete(file) as opened:
            async for piece in export.pieces():
                opened.write(piece)
                lines += piece.count(b"\r\n")
        return WrittenFile(file=str(file), rows=lines - 1, unsettled_requests=export.unsettled)

    written = session.run(settings_path, write)
    if as_json and file != STANDARD_OUTPUT:
        output.show(written, as_json=True)
        return
    output.note(f"Wrote {output.counted(written.rows, 'row', 'rows')} to {written.file}.")
    if written.unsettled_requests:
        requests = output.counted(written.unsettled_requests, "request has", "requests have")
        output.note(f"{requests} no final cost yet, and no row.")


@contextmanager
def _complete(path: Path) -> Generator[IO[bytes]]:
    """Open a file that replaces the one at `path` once the block has written all of it."""
    if path == STANDARD_OUTPUT or (path.exists() and not path.is_file()):
        with click.open_file(str(path), "wb") as stream:
            yield stream
        return
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        with unfinished.open("wb") as file:
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


@command.command(epilog=example("tollhouse export run"))
@reading.range_options
@json_option
@click.pass_obj
def run(
    settings_path: Path, *, since: datetime | None, until: datetime | None, as_json: bool
) -> None:
    """Export finished days of costs and records, as the nightly job does.

    With `--from` or `--to`, the days of the range are compared with their files, and those that
    changed are written again. A day with a request that has no final cost yet waits.
    """
    chosen = None
    if since is not None or until is not None:
        first = date.min if since is None else since.date()
        chosen = ExportRange(first=first, last=date.max if until is None else until.date())
    written = session.run(
        settings_path,
        lambda operator: nightly_export.export(
            operator.database, operator.replica, operator.settings, chosen
        ),
    )
    if written or as_json:
        body = ShownDays(data=[shown_day(day) for day in written])
        output.show_list(body, DAY_COLUMNS, as_json=as_json)
    else:
        click.echo("No day has to be exported.")
