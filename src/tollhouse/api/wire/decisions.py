"""Conversion of policy decisions into wire types, and of cursors into positions."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

from msgspec import UnsetType

from tollhouse.base.clock import unix_seconds
from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import RequestId, parse_uuid, policy_id_text
from tollhouse.base.policies import (
    JUDGED_DIRECTIONS,
    EvaluationOutcome,
    JudgedDirection,
    Mode,
    judged_direction,
)
from tollhouse.contract import decisions as wire
from tollhouse.decisions import service
from tollhouse.decisions.types import (
    DailyTotal,
    DecisionCursor,
    PolicyDecision,
    ReportedDecision,
)


def decision_id(request_id: RequestId, direction: JudgedDirection) -> str:
    """Return the ID of a decision. A policy decides at most once per request and direction."""
    return f"{request_id}_{direction}"


def place(after: str | UnsetType) -> DecisionCursor | None:
    """Return the position after which a page begins, or None for the first page."""
    if isinstance(after, UnsetType):
        return None
    text, _, direction = after.partition("_")
    request_id = parse_uuid(text)
    if request_id is None or direction not in JUDGED_DIRECTIONS:
        raise UnknownCursor
    found = service.place_of(RequestId(request_id), judged_direction(direction))
    if found is None:
        raise UnknownCursor
    return found


def action(mode: Mode, outcome: EvaluationOutcome) -> Literal["blocked", "would_block", "allowed"]:
    """Return the effect on the caller, or the effect that an enforcing policy would have had."""
    is_refusal = outcome in {EvaluationOutcome.MATCH, EvaluationOutcome.FAILED}
    if mode is Mode.ENFORCING:
        return "blocked" if is_refusal else "allowed"
    return "would_block" if outcome is EvaluationOutcome.MATCH else "allowed"


def decision(told: ReportedDecision) -> wire.PolicyDecision:
    """Convert a match or a failure."""
    found: PolicyDecision = told.decision
    return wire.PolicyDecision(
        id=decision_id(told.request_id, told.direction),
        created_at=unix_seconds(told.evaluated_at),
        request_id=str(told.request_id),
        policy_id=policy_id_text(found.policy_id),
        version=found.version,
        direction=told.direction.value,
        mode=found.mode.value,
        outcome="match" if found.outcome is EvaluationOutcome.MATCH else "failed",
        action=action(found.mode, found.outcome),
        reason=found.reason,
        match_threshold_basis_points=found.threshold,
        score_basis_points=found.score,
        lowest_basis_points=found.lowest,
        highest_basis_points=found.highest,
        coverage_basis_points=found.coverage,
        windows=found.windows,
        cached=found.is_cached,
        project_id=str(told.project_id),
        api_key_id=str(told.api_key_id),
    )


def rollups(tallies: Sequence[DailyTotal]) -> wire.PolicyRollupPage:
    """Convert the totals, one per day, version, direction and mode."""
    return wire.PolicyRollupPage(data=[_rollup(tally) for tally in tallies])


def _rollup(tally: DailyTotal) -> wire.PolicyRollup:
    return wire.PolicyRollup(
        start_time=_midnight(tally.day),
        end_time=_midnight(tally.day + timedelta(days=1)),
        version=tally.version,
        direction=tally.direction.value,
        mode=tally.mode.value,
        matches=tally.outcomes[EvaluationOutcome.MATCH],
        no_matches=tally.outcomes[EvaluationOutcome.NO_MATCH],
        failures=tally.outcomes[EvaluationOutcome.FAILED],
        skipped=tally.outcomes[EvaluationOutcome.SKIPPED],
        score_counts=list(tally.score_counts),
    )


def _midnight(day: date) -> int:
    return unix_seconds(datetime.combine(day, time(), UTC))
