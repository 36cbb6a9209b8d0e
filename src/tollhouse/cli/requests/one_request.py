"""`tollhouse request`: one request with its times and the decisions of its policies."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

import click
import msgspec
from msgspec import Struct

from tollhouse.activity import service
from tollhouse.activity.types import RequestRecord
from tollhouse.api.wire import decisions as decision_wire
from tollhouse.api.wire import requests as request_wire
from tollhouse.base.attempts import Attempt
from tollhouse.base.ids import PolicyId, RequestId, policy_id_text
from tollhouse.base.money import to_decimal_string
from tollhouse.cli import output, session
from tollhouse.cli.arguments import EXAMPLE_ID, IDENTIFIER, example, json_option
from tollhouse.cli.output import JsonValue
from tollhouse.cli.requests.outcomes import outcome, refusal
from tollhouse.cli.session import Session
from tollhouse.contract import requests as wire
from tollhouse.decisions import service as decisions
from tollhouse.decisions.types import BlockingDecision, EvaluationRecord

BAR_CELLS: Final = 40
BUSY: Final = "█"
IDLE: Final = "·"


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
    match_threshold_basis_points: int | None
    reason: str | None


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
    refused_by: str | None
    wrong_parameter: str | None
    operation: str
    model: str | None
    requested_model: str | None
    dropped_tools: str | None
    attempts: str | None
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
        refused_by="; ".join(map(refusal, found.blocked_by)) or None,
        wrong_parameter=shown.error_param,
        operation=shown.operation,
        model=shown.model,
        requested_model=shown.requested_model,
        dropped_tools=", ".join(shown.dropped_tools) or None,
        attempts="; ".join(map(_attempt, record.attempts)) or None,
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


def _attempt(attempt: Attempt) -> str:
    place = attempt.model if attempt.replica is None else f"{attempt.model} at {attempt.replica}"
    return f"{place}: {attempt.outcome} after {attempt.ms:.0f} ms"


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
            match_threshold_basis_points=decision.threshold,
            reason=decision.reason,
        )
        for decision in record.decisions
    ]
