"""`tollhouse requests`: the latest requests of an organization."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

import click
from msgspec import Struct

from tollhouse.activity import service
from tollhouse.activity.rules import statuses
from tollhouse.activity.types import ALL_STATUSES, Filter, RecordPage, RequestRecord
from tollhouse.api import request_wire
from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import OrganizationId, ProjectKeyId, RequestId
from tollhouse.base.money import to_decimal_string
from tollhouse.cli import output, session
from tollhouse.cli.arguments import (
    IDENTIFIER,
    MODEL,
    STATUS,
    example,
    json_option,
    organization_option,
)
from tollhouse.cli.request import outcome
from tollhouse.cli.session import Session
from tollhouse.contract.bounds import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX
from tollhouse.contract.listing import ListPage
from tollhouse.decisions import service as decisions
from tollhouse.decisions.types import BlockingDecision
from tollhouse.storage.database import Database

Blocked = dict[RequestId, list[BlockingDecision]]

COLUMNS: Final = ("created_at", "id", "outcome", "model", "total_ms", "usd")
SEARCHES_MAX: Final = 100
"""Each looks at ten thousand requests."""


class Line(Struct, frozen=True, kw_only=True):
    """A request for people."""

    id: str
    created_at: int
    outcome: str
    model: str | None
    total_ms: float
    usd: str | None


class Lines(ListPage, frozen=True, kw_only=True):
    """A page of them."""

    data: list[Line]


@click.command("requests", epilog=example("tollhouse requests --status 5xx --limit 50"))
@organization_option
@click.option("--status", type=STATUS, help="A status such as 503, or a class such as 5xx.")
@click.option("--key", type=IDENTIFIER, help="Only requests with this project key.")
@click.option("--model", type=MODEL, help="Only requests for this model.")
@click.option(
    "--limit",
    type=click.IntRange(1, PAGE_SIZE_MAX),
    default=PAGE_SIZE_DEFAULT,
    help="How many to show at most.",
)
@json_option
@click.pass_obj
def command(
    settings_path: Path,
    *,
    organization: UUID | None,
    status: str | None,
    key: UUID | None,
    model: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List the latest requests, newest first; `tollhouse request ID` shows all of one."""
    only = Filter(
        statuses=ALL_STATUSES if status is None else statuses(status),
        api_key_id=None if key is None else ProjectKeyId(key),
        model=model,
    )

    async def read(operator: Session) -> tuple[RecordPage, Blocked]:
        owner = await operator.organization(organization)
        found = await _latest(operator.database, owner.id, only, limit=limit)
        async with operator.database.transaction() as tx:
            policed = request_wire.policed(found.records)
            return found, await decisions.blocking(tx, owner.id, policed)

    found, blocked = session.run(settings_path, read)
    if as_json:
        output.show_list(request_wire.record_list(found, blocked), COLUMNS, as_json=True)
    else:
        output.show_list(_lines(found, blocked), COLUMNS, as_json=False)


async def _latest(
    database: Database, organization_id: OrganizationId, only: Filter, *, limit: int
) -> RecordPage:
    """Search on where a page came out short, but not for ever."""
    records: list[RequestRecord] = []
    after: RequestId | None = None
    has_more = True
    for _ in range(SEARCHES_MAX):
        async with database.transaction() as tx:
            page = await service.page(
                tx, organization_id, only, after=after, limit=limit - len(records)
            )
        records += page.records
        after, has_more = page.last_id, page.has_more
        if not has_more or len(records) == limit:
            break
    return RecordPage(records=tuple(records), has_more=has_more, last_id=after)


def _lines(page: RecordPage, blocked: Blocked) -> Lines:
    listed = request_wire.record_list(page, blocked)
    return Lines(
        data=[_line(record, blocked.get(record.request_id, [])) for record in page.records],
        has_more=listed.has_more,
        first_id=listed.first_id,
        last_id=listed.last_id,
    )


def _line(record: RequestRecord, blocked_by: Sequence[BlockingDecision]) -> Line:
    cost = record.cost_pico_usd
    return Line(
        id=str(record.request_id),
        created_at=unix_seconds(record.started_at),
        outcome=outcome(record, blocked_by),
        model=record.model,
        total_ms=record.total_ms,
        usd=None if cost is None else to_decimal_string(cost),
    )
