"""`tollhouse archive query`: rows of archived days, or their sums."""

from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, TypedDict, Unpack
from uuid import UUID

import click
from msgspec import Struct

from tollhouse.archive import rules
from tollhouse.archive.types import FORMS, ArchivedTable, DaySums
from tollhouse.cli import output, session
from tollhouse.cli.archive import reading
from tollhouse.cli.arguments import IDENTIFIER, LISTED_MAX, MODEL, example, json_option
from tollhouse.cli.session import Session
from tollhouse.contract.bounds import PAGE_SIZE_DEFAULT

COLUMNS: Final = {
    ArchivedTable.REQUESTS: (
        *("started_at", "request_id", "status", "api_key_id", "model", "cost_pico"),
    ),
    ArchivedTable.LEDGER_ENTRIES: (
        *("admitted_at", "reservation_id", "kind", "api_key_id", "model", "held_pico"),
        "posted_pico",
    ),
}
_ID_COLUMN: Final = {
    ArchivedTable.REQUESTS: "request_id",
    ArchivedTable.LEDGER_ENTRIES: "reservation_id",
}


class FoundRows(Struct, frozen=True, kw_only=True):
    """Rows of the archive; without `--json` only some of their columns are shown."""

    object: Literal["list"] = "list"
    data: list[dict[str, Any]]
    has_more: bool


class FoundTotal(Struct, frozen=True, kw_only=True):
    """The sums of the rows that match."""

    object: Literal["archive.total"] = "archive.total"
    days: int
    rows: int
    sums: dict[str, int]


class _RowFilters(TypedDict):
    """The options that choose rows."""

    row_id: UUID | None
    organization: UUID | None
    project: UUID | None
    key: UUID | None
    model: str | None


class _DayRange(TypedDict):
    since: datetime | None
    until: datetime | None


@click.command(epilog=example("tollhouse archive query requests --from 2026-08-01 --model M"))
@click.argument("table", type=click.Choice([table.value for table in ArchivedTable]))
@reading.range_options
@click.option("--id", "row_id", type=IDENTIFIER, help="Only this request or reservation.")
@click.option("--org", "organization", type=IDENTIFIER, help="Only rows of this organization.")
@click.option("--project", type=IDENTIFIER, help="Only rows of this project.")
@click.option("--key", type=IDENTIFIER, help="Only rows of this project key.")
@click.option("--model", type=MODEL, help="Only rows with this model.")
@click.option(
    "--limit",
    type=click.IntRange(1, LISTED_MAX),
    default=PAGE_SIZE_DEFAULT,
    help="The most rows to show.",
)
@click.option("--total", is_flag=True, help="Show the sums of all rows that match, and no rows.")
@json_option
@click.pass_obj
def query(
    settings_path: Path,
    *,
    table: str,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    total: bool,
    as_json: bool,
    **filters: Unpack[_RowFilters],
) -> None:
    """Read archived rows: those that match all options, by day, organization and ID.

    Other programs can read the files as well: they are plain Parquet.
    """
    chosen, within = ArchivedTable(table), _DayRange(since=since, until=until)
    equal = _equal(chosen, filters)
    if total:
        found = session.run(settings_path, lambda operator: _total(operator, chosen, within, equal))
        output.show(found, as_json=as_json)
        return
    rows = session.run(
        settings_path, lambda operator: _rows(operator, chosen, within, equal, limit=limit)
    )
    output.show_list(rows, COLUMNS[chosen], as_json=as_json)


def _equal(table: ArchivedTable, filters: _RowFilters) -> dict[str, object]:
    """Return the values that columns must have."""
    wanted = {
        "organization_id": filters["organization"],
        "project_id": filters["project"],
        "api_key_id": filters["key"],
        "model": filters["model"],
        _ID_COLUMN[table]: filters["row_id"],
    }
    return {name: str(value) for name, value in wanted.items() if value is not None}


async def _rows(
    operator: Session,
    table: ArchivedTable,
    within: _DayRange,
    equal: dict[str, object],
    *,
    limit: int,
) -> FoundRows:
    files = reading.files_of(operator.settings)
    days = await reading.archived(operator, within["since"], within["until"], tables=(table,))
    found = files.find(days, equal, rows_max=limit + 1)
    return FoundRows(data=found[:limit], has_more=len(found) > limit)


async def _total(
    operator: Session, table: ArchivedTable, within: _DayRange, equal: dict[str, object]
) -> FoundTotal:
    files = reading.files_of(operator.settings)
    days = await reading.archived(operator, within["since"], within["until"], tables=(table,))
    parts: list[DaySums] = [files.total(day, equal) for day in days]
    sums = rules.total(parts, summed=FORMS[table].summed)
    return FoundTotal(days=len(days), rows=sums.rows, sums=sums.sums)
