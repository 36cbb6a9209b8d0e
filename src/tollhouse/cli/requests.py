"""`tollhouse request` and `requests`: one request with its times, and the latest requests."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

import click
import msgspec
from msgspec import Struct

from tollhouse.activity import service
from tollhouse.activity.rules import statuses
from tollhouse.activity.types import ALL_STATUSES, RecordFilter, RecordPage, RequestRecord
from tollhouse.api.wire import decisions as decision_wire
from tollhouse.api.wire import requests as request_wire
from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import OrganizationId, PolicyId, ProjectKeyId, RequestId, policy_id_text
from tollhouse.base.money import to_decimal_string
from tollhouse.cli import output, session
from tollhouse.cli.arguments import (
    EXAMPLE_ID,
    IDENTIFIER,
    MODEL,
    STATUS,
    example,
    json_option,
    organization_option,
)
from tollhouse.cli.output import JsonValue
from tollhouse.cli.session import Session
from tollhouse.contract import requests as wire
from tollhouse.contract.bounds import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX
from tollhouse.contract.listing import ListPage
from tollhouse.decisions import service as decisions
from tollhouse.decisions.types import BlockingDecision, EvaluationRecord
from tollhouse.storage.database import Database

Blocked = dict[RequestId, list[BlockingDecision]]

COLUMNS: Final = ("created_at", "id", "outcome", "model", "total_ms", "usd")
SEARCHES_MAX: Final = 100
"""The most searches for one list; each reads up to ten thousand requests."""
BAR_CELLS: Final = 40
BUSY: Final = "█"
IDLE: Final = "·"
CALLER_DISCONNECTED: Final = 499


class ShownDecision(Struct, frozen=True, kw_only=True):
    """The decision of one policy about the request or its answer."""

    direction: str
    policy_id: str
    policy_name: str
    version: int
    mode: str
    outcome: str
    action: str
    score_basis_points: int | None


class RequestWithDecisions(wire.RequestRecord, frozen=True, kw_only=True):
    """A request as `/manage/v1` shows it, with its organization and the policies' decisions."""

    organization_id: str
    decisions: list[ShownDecision]


class _Found(NamedTuple):
    """One request with its evaluations, the names of its policies, and those that blocked it."""

    record: RequestRecord
    evaluations: list[EvaluationRecord]
    names: dict[PolicyId, str]
    blocked_by: list[BlockingDecision]


class Facts(Struct, frozen=True, kw_only=True):
    """The fields of a request that are shown above its times."""

    id: str
    created_at: int
    outcome: str
    operation: str
    model: str | None
    backend: str | None
    replica: str | None
    stream: bool
    input_tokens: int | None
    cached_input_tokens: int | None
    output_tokens: int | None
    estimated: bool
    usd: str | None
    organization_id: str
    project_id: str
    api_key_id: str


class Step(Struct, frozen=True, kw_only=True):
    """A part of a request's time, in milliseconds from the request's start."""

    name: str
    start_ms: float
    end_ms: float


class RequestRow(Struct, frozen=True, kw_only=True):
    """A request as a line of the list."""

    id: str
    created_at: int
    outcome: str
    model: str | None
    total_ms: float
    usd: str | None


class RequestRows(ListPage, frozen=True, kw_only=True):
    """A page of requests."""

    data: list[RequestRow]


@click.command("request", epilog=example(f"tollhouse request {EXAMPLE_ID}"))
@click.argument("request_id", metavar="ID", type=IDENTIFIER)
@json_option
@click.pass_obj
def request(settings_path: Path, *, request_id: UUID, as_json: bool) -> None:
    """Show the outcome of a request of any organization, by its X-Request-ID.

    Shows whether the caller, the gateway or the backend failed, and what every policy decided. A
    record appears a second after its request has ended. It is kept for activity.record_days,
    decisions for policies.decision_days.
    """
    found = session.run(settings_path, partial(_read, request_id=RequestId(request_id)))
    decided = [one for each in found.evaluations for one in _shown_decisions(each, found.names)]
    if as_json:
        output.show(_with_decisions(found, decided), as_json=True)
        return
    output.show(_facts(found), as_json=False)
    click.echo()
    output.show_rows(_rows(found.record), ("step", "ms", "when"))
    if decided:
        click.echo()
        output.show_rows(
            [msgspec.structs.asdict(one) for one in decided], ShownDecision.__struct_fields__
        )


async def _read(operator: Session, *, request_id: RequestId) -> _Found:
    async with operator.database.transaction() as tx:
        record = await service.find(tx, request_id)
        owner = record.organization_id
        evaluations = await decisions.of_request(tx, owner, request_id)
        policy_ids = {one.policy_id for each in evaluations for one in each.decisions}
        names = await decisions.policy_names(tx, owner, list(policy_ids))
        blocked = await decisions.blocking(tx, owner, request_wire.policed([record]))
    return _Found(record, evaluations, names, blocked.get(request_id, []))


def outcome(record: RequestRecord, blocked_by: Sequence[BlockingDecision]) -> str:
    """Return the status; for a failure also its code, its source and the blocking policies."""
    words = [str(record.status)]
    if record.status == CALLER_DISCONNECTED:
        words.append("the caller disconnected")
    if record.error_code is not None:
        words.append(record.error_code)
    if blocked_by:
        words.append("by policy " + ", ".join(f"'{each.name}'" for each in blocked_by))
    if record.failed_by is not None:
        words.append(f"(failed by the {record.failed_by})")
    return " ".join(words)


def steps(record: RequestRecord) -> list[Step]:
    """Return the known parts of a request's time, one after the other."""
    found: list[Step] = []
    at = 0.0
    for name, length_ms in (
        ("queue", record.queue_ms),
        ("admission", record.admission_ms),
        ("judging", record.judging_ms),
    ):
        if length_ms is not None:
            found.append(Step(name=name, start_ms=at, end_ms=at + length_ms))
            at += length_ms
    if record.first_byte_ms is None:
        return [*found, Step(name="rest", start_ms=at, end_ms=max(at, record.total_ms))]
    first = max(at, record.first_byte_ms)
    return [
        *found,
        Step(name="first byte", start_ms=at, end_ms=first),
        Step(name="answer", start_ms=first, end_ms=max(first, record.total_ms)),
    ]


def bar(step: Step, total_ms: float) -> str:
    """Return a bar that shows the step within the whole time. A step with any length has a cell."""
    if total_ms <= 0:
        return IDLE * BAR_CELLS
    start = min(int(step.start_ms * BAR_CELLS / total_ms), BAR_CELLS - 1)
    end = min(round(step.end_ms * BAR_CELLS / total_ms), BAR_CELLS)
    cells = max(end - start, 1) if step.end_ms > step.start_ms else 0
    return (IDLE * start + BUSY * cells).ljust(BAR_CELLS, IDLE)


def _rows(record: RequestRecord) -> list[dict[str, JsonValue]]:
    parts = steps(record)
    total_ms = parts[-1].end_ms
    whole = Step(name="total", start_ms=0.0, end_ms=total_ms)
    return [
        {
            "step": step.name,
            "ms": f"{step.end_ms - step.start_ms:12.3f}",
            "when": bar(step, total_ms),
        }
        for step in (*parts, whole)
    ]


def _facts(found: _Found) -> Facts:
    record = found.record
    shown = request_wire.record(record)
    return Facts(
        id=shown.id,
        created_at=shown.created_at,
        outcome=outcome(record, found.blocked_by),
        operation=shown.operation,
        model=shown.model,
        backend=shown.backend,
        replica=shown.replica,
        stream=shown.stream,
        input_tokens=record.input_tokens,
        cached_input_tokens=record.cached_input_tokens,
        output_tokens=record.output_tokens,
        estimated=record.is_estimated,
        usd=None if record.cost_pico_usd is None else to_decimal_string(record.cost_pico_usd),
        organization_id=str(record.organization_id),
        project_id=shown.project_id,
        api_key_id=shown.api_key_id,
    )


def _with_decisions(found: _Found, decided: list[ShownDecision]) -> RequestWithDecisions:
    shown = msgspec.structs.asdict(request_wire.record(found.record, found.blocked_by))
    return RequestWithDecisions(
        **shown, organization_id=str(found.record.organization_id), decisions=decided
    )


def _shown_decisions(
    record: EvaluationRecord, names: Mapping[PolicyId, str]
) -> list[ShownDecision]:
    return [
        ShownDecision(
            direction=record.direction,
            policy_id=policy_id_text(decision.policy_id),
            policy_name=names.get(decision.policy_id, ""),
            version=decision.version,
            mode=decision.mode,
            outcome=decision.outcome,
            action=decision_wire.action(decision.mode, decision.outcome),
            score_basis_points=decision.score,
        )
        for decision in record.decisions
    ]


@click.command("requests", epilog=example("tollhouse requests --status 5xx --limit 50"))
@organization_option
@click.option("--status", type=STATUS, help="A status such as 503, or a class such as 5xx.")
@click.option("--key", type=IDENTIFIER, help="Only requests with this project key.")
@click.option("--model", type=MODEL, help="Only requests for this model.")
@click.option(
    "--limit",
    type=click.IntRange(1, PAGE_SIZE_MAX),
    default=PAGE_SIZE_DEFAULT,
    help="The most requests to show.",
)
@json_option
@click.pass_obj
def requests(
    settings_path: Path,
    *,
    organization: UUID | None,
    status: str | None,
    key: UUID | None,
    model: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List the latest requests, newest first. `tollhouse request ID` shows one in full."""
    only = RecordFilter(
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
        output.show_list(_listed(found, blocked), COLUMNS, as_json=False)


async def _latest(
    database: Database, organization_id: OrganizationId, only: RecordFilter, *, limit: int
) -> RecordPage:
    """Return the latest requests that match. A page can be short, so it searches repeatedly."""
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


def _listed(page: RecordPage, blocked: Blocked) -> RequestRows:
    listed = request_wire.record_list(page, blocked)
    return RequestRows(
        data=[_request_row(record, blocked.get(record.request_id, [])) for record in page.records],
        has_more=listed.has_more,
        first_id=listed.first_id,
        last_id=listed.last_id,
    )


def _request_row(record: RequestRecord, blocked_by: Sequence[BlockingDecision]) -> RequestRow:
    cost = record.cost_pico_usd
    return RequestRow(
        id=str(record.request_id),
        created_at=unix_seconds(record.started_at),
        outcome=outcome(record, blocked_by),
        model=record.model,
        total_ms=record.total_ms,
        usd=None if cost is None else to_decimal_string(cost),
    )
