"""Conversion of request records into wire types, and of queries into filters."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from msgspec import UnsetType

from tollhouse.activity.errors import RecordKeyNotFound, RecordProjectNotFound, RequestNotFound
from tollhouse.activity.rules import HOUR_SECONDS, outcome, statuses
from tollhouse.activity.types import (
    ALL_STATUSES,
    LATENCY_BOUNDS_MS,
    HourlyTotal,
    HourRange,
    RecordFilter,
    RecordGap,
    RecordGrouping,
    RecordPage,
    RequestOutcome,
    RequestRecord,
)
from tollhouse.api.call import OperationCall
from tollhouse.api.wire.money import money
from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import (
    PolicyId,
    ProjectId,
    ProjectKeyId,
    RequestId,
    parse_policy_id,
    parse_uuid,
    policy_id_text,
)
from tollhouse.base.policies import EvaluationOutcome
from tollhouse.contract import requests as wire
from tollhouse.decisions.types import BlockingDecision, EvaluationRecord
from tollhouse.policies.errors import PolicyNotFound

_DECIMALS: Final = 3

T = TypeVar("T")


def request_id(call: OperationCall[Any, Any, Any]) -> RequestId:
    """Return the request ID in the path. Raises `RequestNotFound`."""
    parsed = parse_uuid(call.path["request_id"])
    if parsed is None:
        raise RequestNotFound
    return RequestId(parsed)


def filter_(query: wire.RequestsQuery) -> RecordFilter:
    """Convert a query into a filter."""
    return RecordFilter(
        statuses=ALL_STATUSES if isinstance(query.status, UnsetType) else statuses(query.status),
        project_id=_project_id(query.project_id),
        api_key_id=_api_key_id(query.api_key_id),
        model=_sent(query.model),
        operation=_sent(query.operation),
        label=_sent(query.label),
        error_code=_sent(query.error_code),
        outcome=None if isinstance(query.outcome, UnsetType) else RequestOutcome(query.outcome),
        start=_instant(query.start_time),
        end=_instant(query.end_time),
    )


def policy_id(query: wire.RequestsQuery) -> PolicyId | None:
    """Return the policy of a query, or None. Raises `PolicyNotFound`."""
    if isinstance(query.policy_id, UnsetType):
        return None
    parsed = parse_policy_id(query.policy_id)
    if parsed is None:
        raise PolicyNotFound
    return parsed


def policed(records: Iterable[RequestRecord]) -> list[RequestId]:
    """Return the IDs of the requests that ended with a policy error."""
    return [each.request_id for each in records if (each.error_code or "").startswith("policy_")]


def record(kept: RequestRecord, blocked_by: Sequence[BlockingDecision] = ()) -> wire.RequestRecord:
    """Convert a request, with the policies that refused it."""
    return wire.RequestRecord(
        id=str(kept.request_id),
        created_at=unix_seconds(kept.started_at),
        operation=kept.operation,
        status=kept.status,
        outcome=outcome(kept.status, kept.error_code).value,
        error_code=kept.error_code,
        error_param=kept.error_param,
        failed_by=None if kept.failed_by is None else kept.failed_by.value,
        blocked_by=[_blocking(decision) for decision in blocked_by],
        model=kept.model,
        requested_model=kept.requested_model,
        label=kept.label,
        dropped_tools=list(kept.dropped_tools),
        attempts=[
            wire.RequestAttempt(
                model=each.model, replica=each.replica, outcome=each.outcome, ms=each.ms
            )
            for each in kept.attempts
        ],
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
        outcome="match" if decision.outcome is EvaluationOutcome.MATCH else "failed",
        score_basis_points=decision.score,
        match_threshold_basis_points=decision.threshold,
        reason=decision.reason,
    )


def details(
    kept: RequestRecord,
    blocked_by: Sequence[BlockingDecision],
    evaluations: Iterable[EvaluationRecord],
    names: Mapping[PolicyId, str],
) -> wire.RequestDetails:
    """Convert a request with its evaluations. `names` has the current names of their policies."""
    shown = record(kept, blocked_by)
    return wire.RequestDetails(
        **{name: getattr(shown, name) for name in shown.__struct_fields__ if name != "object"},
        evaluations=[_evaluation(each, names) for each in evaluations],
    )


def _evaluation(
    evaluation: EvaluationRecord, names: Mapping[PolicyId, str]
) -> wire.RequestEvaluation:
    return wire.RequestEvaluation(
        direction=evaluation.direction.value,
        mode=evaluation.mode.value,
        judging_ms=round(evaluation.judging_ms, _DECIMALS),
        decisions=[
            wire.RequestDecision(
                id=policy_id_text(decision.policy_id),
                name=names.get(decision.policy_id, ""),
                version=decision.version,
                outcome=decision.outcome.value,
                score_basis_points=decision.score,
                match_threshold_basis_points=decision.threshold,
                reason=decision.reason,
            )
            for decision in evaluation.decisions
        ],
    )


def record_list(
    page: RecordPage,
    blocked: Mapping[RequestId, Sequence[BlockingDecision]],
    gaps: Sequence[RecordGap],
) -> wire.RequestRecordList:
    """Convert a page, which ends where the search ended.

    `blocked` has the policies that refused requests, by request.
    """
    return wire.RequestRecordList(
        data=[record(kept, blocked.get(kept.request_id, ())) for kept in page.records],
        has_more=page.has_more,
        first_id=str(page.records[0].request_id) if page.records else None,
        last_id=None if page.last_id is None else str(page.last_id),
        gaps=[
            wire.RequestGap(
                start_time=unix_seconds(gap.first_at), end_time=unix_seconds(gap.last_at)
            )
            for gap in gaps
        ],
    )


def grouping(query: wire.RequestRollupsQuery) -> RecordGrouping | None:
    """Return the field to group by, or None."""
    sent = _sent(query.group_by)
    return None if sent is None else RecordGrouping(sent)


def rollups(
    hours: HourRange, group_by: RecordGrouping | None, tallies: Sequence[HourlyTotal]
) -> wire.RequestRollupPage:
    """Convert totals into one bucket per hour of the range, also for hours without requests."""
    by_hour: dict[int, list[HourlyTotal]] = {}
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


def _rollup(group_by: RecordGrouping | None, tally: HourlyTotal) -> wire.RequestRollup:
    return wire.RequestRollup(
        requests=tally.requests,
        failed=tally.failed,
        refused=tally.refused,
        client_errors=tally.client_errors,
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
        project_id=tally.group if group_by is RecordGrouping.PROJECT else None,
        api_key_id=tally.group if group_by is RecordGrouping.KEY else None,
        model=(tally.group or None) if group_by is RecordGrouping.MODEL else None,
    )


def _project_id(sent: str | UnsetType) -> ProjectId | None:
    if isinstance(sent, UnsetType):
        return None
    parsed = parse_uuid(sent)
    if parsed is None:
        raise RecordProjectNotFound
    return ProjectId(parsed)


def _api_key_id(sent: str | UnsetType) -> ProjectKeyId | None:
    if isinstance(sent, UnsetType):
        return None
    parsed = parse_uuid(sent)
    if parsed is None:
        raise RecordKeyNotFound
    return ProjectKeyId(parsed)


def _instant(sent: int | UnsetType) -> datetime | None:
    return None if isinstance(sent, UnsetType) else datetime.fromtimestamp(sent, UTC)


def _sent(value: T | UnsetType) -> T | None:
    return None if isinstance(value, UnsetType) else value
