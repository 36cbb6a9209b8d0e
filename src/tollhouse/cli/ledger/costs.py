"""`tollhouse costs`: the daily costs of an organization, as a table with bars."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

import click

from tollhouse.api.handlers.costs import unsettled, wire_buckets
from tollhouse.base.clock import unix_seconds
from tollhouse.base.money import PicoUsd, to_decimal_string
from tollhouse.cli import output, session
from tollhouse.cli.arguments import (
    COSTS_GROUPING,
    INSTANT,
    LISTED_MAX,
    example,
    json_option,
    organization_option,
)
from tollhouse.cli.output import JsonValue
from tollhouse.cli.session import Session
from tollhouse.contract.costs import CostPage
from tollhouse.reports import rules, service
from tollhouse.reports.types import (
    EMPTY_REPORT,
    Bucket,
    CostFilter,
    CostLine,
    CostQuery,
    CostReport,
    CostSubject,
    Dimension,
    PageCursor,
    Width,
)
from tollhouse.storage.database import Database

DEFAULT_DAYS: Final = 30
BAR_CELLS: Final = 30
BAR: Final = "█"
DIMENSIONS: Final = (Dimension.PROJECT, Dimension.KEY, Dimension.LINE_ITEM)


class Costs(CostPage, frozen=True, kw_only=True):
    """The document of `GET /v1/organization/costs` on one page, with two counts of requests.

    `estimated_requests` are those whose tokens Tollhouse counted, because the backend reported no
    usage.
    """

    unsettled_requests: int
    estimated_requests: int


@click.command("costs", epilog=example("tollhouse costs --from 2026-08-01 --by line_item"))
@organization_option
@click.option("--from", "since", type=INSTANT, help="Start, in UTC. When left out, 30 days ago.")
@click.option(
    "--to",
    "until",
    type=INSTANT,
    help="End, in UTC. When left out, the end of today.",
)
@click.option(
    "--by",
    type=COSTS_GROUPING,
    multiple=True,
    help=(
        "Group by project_id, api_key_id, line_item, and one of user, safety_identifier and"
        " metadata.KEY. Can be given several times."
    ),
)
@json_option
@click.pass_obj
def command(
    settings_path: Path,
    *,
    organization: UUID | None,
    since: datetime | None,
    until: datetime | None,
    by: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show settled costs by the UTC day on which each request was admitted."""

    async def read(operator: Session) -> CostReport:
        owner = await operator.organization(organization)
        now = operator.clock.now()
        query = _query(since or midnight(now) - timedelta(days=DEFAULT_DAYS), by)
        end = unix_seconds(until or midnight(now) + timedelta(days=1))
        cursor = service.first_place(query, end, now=now)
        if cursor is None:
            return EMPTY_REPORT
        _refuse_too_many(cursor)

        async def report(database: Database) -> CostReport:
            async with database.transaction() as tx:
                return await service.read(tx, owner.id, query, cursor, buckets_max=LISTED_MAX)

        return await operator.read(report)

    _show(session.run(settings_path, read), by, as_json=as_json)


def _refuse_too_many(cursor: PageCursor) -> None:
    days = -((cursor.bucket - cursor.end) // Width.DAY)
    if days > LISTED_MAX:
        message = (
            f"The range has {days} days, and at most {LISTED_MAX} can be shown."
            " Give a later --from or an earlier --to."
        )
        raise click.UsageError(message)


def _query(since: datetime, by: tuple[str, ...]) -> CostQuery:
    grouping, attribution = service.grouping_of(by)
    return CostQuery(
        subject=CostSubject.COSTS,
        start=unix_seconds(since),
        width=Width.DAY,
        only=CostFilter(),
        grouping=grouping,
        attribution=attribution,
    )


def _show(report: CostReport, by: tuple[str, ...], *, as_json: bool) -> None:
    estimated = sum(used.sums.estimated_requests for day in report.buckets for used in day.used)
    if as_json:
        output.show(
            Costs(
                data=wire_buckets(report.buckets),
                has_more=False,
                next_page=None,
                unsettled=unsettled(report.buckets),
                unsettled_requests=report.unsettled,
                estimated_requests=estimated,
            ),
            as_json=True,
        )
        return
    by_day = [(_day(bucket), rules.cost_lines(bucket.used)) for bucket in report.buckets]
    amounts = [line.amount for _, lines in by_day for line in lines]
    fields = [name for name in DIMENSIONS if name in by]
    columns = ("day", *dict.fromkeys((*fields, *by)), "usd", "bar")
    output.show_rows(_rows(by_day, columns, most=max(amounts, default=PicoUsd(0))), columns)
    total = PicoUsd(sum(amounts))
    click.echo(f"\nTotal: {to_decimal_string(total)} USD")
    if report.unsettled:
        requests = output.counted(report.unsettled, "request has", "requests have")
        click.echo(f"{requests} no final cost yet. The amounts above do not include them.")
    if estimated:
        requests = output.counted(estimated, "request is", "requests are")
        click.echo(
            f"The cost of {requests} estimated: the backend reported no usage, so Tollhouse counted"
            " the tokens."
        )


def _rows(
    by_day: list[tuple[str, list[CostLine]]], columns: tuple[str, ...], *, most: PicoUsd
) -> list[dict[str, JsonValue]]:
    """Return a row for each line. A day without settled usage has a row without an amount."""
    rows: list[dict[str, JsonValue]] = []
    for day, lines in by_day:
        rows += [
            dict.fromkeys(columns, line.group.attribution) | _row(day, line, most=most)
            for line in lines
        ]
        if not lines:
            rows.append(dict.fromkeys(columns) | {"day": day})
    return rows


def _row(day: str, line: CostLine, *, most: PicoUsd) -> dict[str, JsonValue]:
    value = to_decimal_string(line.amount)
    return {
        "day": day,
        "project_id": str(line.group.project_id),
        "api_key_id": str(line.group.api_key_id),
        "line_item": line.line_item,
        # Aligns the decimal points.
        "usd": " " * (_whole_digits(most) - _whole_digits(line.amount)) + value,
        # Rounded up, so that only a cost of zero has no bar.
        "bar": BAR * (-(-line.amount * BAR_CELLS // most) if most else 0),
    }


def _whole_digits(amount: PicoUsd) -> int:
    return len(to_decimal_string(amount).partition(".")[0])


def _day(bucket: Bucket) -> str:
    return datetime.fromtimestamp(bucket.span.start, UTC).strftime("%Y-%m-%d")


def midnight(now: datetime) -> datetime:
    """Return the beginning of a day."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0)
