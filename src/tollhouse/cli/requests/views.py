"""Requests as rows of a table, and as lines that follow each other."""

from collections.abc import Sequence
from typing import Final

import click
import msgspec
from msgspec import Struct

from tollhouse.activity.types import RecordGap, RequestRecord
from tollhouse.api.wire import requests as request_wire
from tollhouse.base.clock import unix_seconds
from tollhouse.base.money import to_decimal_string
from tollhouse.cli.output import visible
from tollhouse.cli.requests.outcomes import outcome
from tollhouse.cli.requests.reading import FoundRequests
from tollhouse.contract.listing import ListPage

COLUMNS: Final = (*("created_at", "id", "ended", "project", "key", "model", "total_ms", "usd"),)
_GAP: Final = "   "


class RequestRow(Struct, frozen=True, kw_only=True):
    """A request as a line of the list."""

    id: str
    created_at: int
    ended: str
    project: str
    key: str
    model: str | None
    total_ms: int
    usd: str | None


class RequestRows(ListPage, frozen=True, kw_only=True):
    """A page of requests."""

    data: list[RequestRow]


def listed(found: FoundRequests) -> RequestRows:
    """Return a page of requests as rows."""
    page = request_wire.record_list(found.page, found.blocked, found.gaps)
    return RequestRows(
        data=[_request_row(record, found) for record in found.page.records],
        has_more=page.has_more,
        first_id=page.first_id,
        last_id=page.last_id,
    )


def show_gaps(gaps: Sequence[RecordGap]) -> None:
    """Say on standard error which requests have no record."""
    for gap in gaps:
        count = "1 request has" if gap.records == 1 else f"{gap.records} requests have"
        click.echo(
            f"{count} no record, of any organization, from {gap.first_at:%Y-%m-%d %H:%M:%SZ} to "
            f"{gap.last_at:%Y-%m-%d %H:%M:%SZ}: their worker had no room for more.",
            err=True,
        )


def show_followed(found: FoundRequests, *, as_json: bool) -> None:
    """Print a line for each request, the oldest first."""
    for record in reversed(found.page.records):
        if as_json:
            blocked_by = found.blocked.get(record.request_id, ())
            click.echo(msgspec.json.encode(request_wire.record(record, blocked_by)))
        else:
            click.echo(_line(record, found))


def _line(record: RequestRecord, found: FoundRequests) -> str:
    key, project = _names(record, found)
    parts = (
        f"{record.started_at:%Y-%m-%d %H:%M:%SZ}",
        str(record.request_id),
        outcome(record, found.blocked.get(record.request_id, ())),
        project,
        key,
        record.model or record.operation,
        f"{record.total_ms:.0f} ms",
    )
    return visible(_GAP.join(parts))


def _names(record: RequestRecord, found: FoundRequests) -> tuple[str, str]:
    """Return the names of a request's key and project, or their IDs if the key is gone."""
    return found.names.get(record.api_key_id, (str(record.api_key_id), str(record.project_id)))


def _request_row(record: RequestRecord, found: FoundRequests) -> RequestRow:
    cost = record.cost_pico_usd
    key, project = _names(record, found)
    return RequestRow(
        id=str(record.request_id),
        created_at=unix_seconds(record.started_at),
        ended=outcome(record, found.blocked.get(record.request_id, ())),
        project=project,
        key=key,
        model=record.model,
        total_ms=round(record.total_ms),
        usd=None if cost is None else to_decimal_string(cost),
    )
