"""Records of requests turned into wire types, and what callers ask for into nouns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from msgspec import UnsetType

from tollhouse.activity.errors import KeyNotFound, ProjectNotFound, RequestNotFound
from tollhouse.activity.rules import HOUR_SECONDS, statuses
from tollhouse.activity.types import (
    ALL_STATUSES,
    LATENCY_BOUNDS_MS,
    Filter,
    Grouping,
    Hours,
    RecordPage,
    RequestRecord,
    Tally,
)
from tollhouse.api.call import Call
from tollhouse.api.money_wire import money
from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import ProjectId, ProjectKeyId, RequestId, parse_uuid, policy_id_text
from tollhouse.contract import requests as wire
from tollhouse.decisions.types import BlockingDecision, Outcome

_DECIMALS: Final = 3

T = TypeVar("T")


def request_id(call: Call[Any, Any, Any]) -> RequestId:
    """The request that the path names; text that cannot be an ID is an unknown one."""
    parsed = parse_uuid(call.path["request_id"])
    if parsed is None:
        raise RequestNotFound
    return RequestId(parsed)


def filter_(query: wire.RequestsQuery) -> Filter:
    """What a list is narrowed to."""
    return Filter(
        statuses=ALL_STATUSES if isinstance(query.status, UnsetType) else statuses(query.status),
        project_id=_project_id(query.project_id),
        api_key_id=_api_key_id(query.api_key_id),
        model=_sent(query.model),
        operation=_sent(query.operation),
    )


def policed(records: Iterable[RequestRecord]) -> list[RequestId]:
    """The requests among these that a policy refused, or that one could not decide about."""
    return [each.request_id for each in records if (each.error_code or "").startswith("policy_")]


def record(kept: RequestRecord, blocked_by: Sequence[BlockingDecision] = ()) -> wire.RequestRecord:
    """One request, with the policies that refused it."""
    return wire.RequestRecord(
        id=str(kept.request_id),
        created_at=unix_seconds(kept.started_at),
        operation=kept.operation,
        status=kept.status,
        error_code=kept.error_code,
        failed_by=None if kept.culprit is None else kept.culprit.value,
        blocked_by=[_blocking(decision) for decision in blocked_by],
        model=kept.model,
        backend=kept.backend,
        replica=kept.replica,
        stream=kept.is_stream,
        tokens=wire.RequestTokens(
            input=kept.input_tokens,
            cached_input=kept.cached_input_tokens,
            output=kept.output_tokens,
        ),
        estimated=kept.is_estimated,
        cost=None if kept.cost_pico_usd is None else money(kept.cost_pico_usd),
        timings=wire.RequestTimings(
            queue_ms=kept.queue_ms,
            admission_ms=kept.admission_ms,
            judging_ms=kept.judging_ms,
            first_byte_ms=kept.first_byte_ms,
            total_ms=kept.total_ms,
        ),
        project_id=str(kept.project_id),
        api_key_id=str(kept.api_key_id),
    )


def _blocking(decision: BlockingDecision) -> wire.BlockingPolicy:
    return wire.BlockingPolicy(
        id=policy_id_text(decision.policy_id),
        name=decision.name,
        version=decision.version,
        direction=decision.direction.value,
        outcome="match" if decision.outcome is Outcome.MATCH else "failed",
    )


def record_list(
    page: RecordPage, blocked: Mapping[RequestId, Sequence[BlockingDecision]]
) -> wire.RequestRecordList:
    """A page, which ends where the search did. `blocked` has the policies that refused requests."""
    return wire.RequestRecordList(
        data=[record(kept, blocked.get(kept.request_id, ())) for kept in page.records],
        has_more=page.has_more,
        first_id=str(page.records[0].request_id) if page.records else None,
        last_id=None if page.last_id is None else str(page.last_id),
    )


def grouping(query: wire.RequestRollupsQuery) -> Grouping | None:
    """What sums are kept apart by."""
    sent = _sent(query.group_by)
    return None if sent is None else Grouping(sent)


def rollups(
    hours: Hours, group_by: Grouping | None, tallies: Sequence[Tally]
) -> wire.RequestRollupPage:
    """Every hour of the range, those without requests too."""
    by_hour: dict[int, list[Tally]] = {}
    for tally in tallies:
        by_hour.setdefault(tally.hour, []).append(tally)
    return wire.RequestRollupPage(
        latency_bounds_ms=list(LATENCY_BOUNDS_MS),
        data=[
            wire.RequestRollupBucket(
                start_time=start,
                end_time=start + HOUR_SECONDS,
                results=[_rollup(group_by, tally) for tally in by_hour.get(start, ())],
            )
            for start in range(hours.start, hours.end, HOUR_SECONDS)
        ],
    )


def _rollup(group_by: Grouping | None, tally: Tally) -> wire.RequestRollup:
    return wire.RequestRollup(
        requests=tally.requests,
        failures=[
            wire.RequestFailures(
                status=failures.status,
                error_code=failures.error_code,
                requests=failures.requests,
            )
            for failures in tally.failures
        ],
        input_tokens=tally.input_tokens,
        cached_input_tokens=tally.cached_input_tokens,
        output_tokens=tally.output_tokens,
        mean_total_ms=round(tally.total_ms / tally.requests, _DECIMALS),
        latency_counts=list(tally.latency_counts),
        project_id=tally.group if group_by is Grouping.PROJECT else None,
        api_key_id=tally.group if group_by is Grouping.KEY else None,
        model=(tally.group or None) if group_by is Grouping.MODEL else None,
    )


def _project_id(sent: str | UnsetType) -> ProjectId | None:
    if isinstance(sent, UnsetType):
        return None
    parsed = parse_uuid(sent)
    if parsed is None:
        raise ProjectNotFound
    return ProjectId(parsed)


def _api_key_id(sent: str | UnsetType) -> ProjectKeyId | None:
    if isinstance(sent, UnsetType):
        return None
    parsed = parse_uuid(sent)
    if parsed is None:
        raise KeyNotFound
    return ProjectKeyId(parsed)


def _sent(value: T | UnsetType) -> T | None:
    return None if isinstance(value, UnsetType) else value
