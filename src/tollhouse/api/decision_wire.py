"""Decisions turned into wire types, and cursors into places."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

from msgspec import UnsetType

from tollhouse.base.clock import unix_seconds
from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import RequestId, parse_uuid, policy_id_text
from tollhouse.contract import decisions as wire
from tollhouse.decisions import service
from tollhouse.decisions.types import (
    Direction,
    Mode,
    Outcome,
    Place,
    PolicyDecision,
    Tally,
    ToldDecision,
)


def decision_id(request_id: RequestId, direction: Direction) -> str:
    """One policy decides about a request at most once in each direction."""
    return f"{request_id}_{direction}"


def place(after: str | UnsetType) -> Place | None:
    """Where the page before ended; nothing on the first page."""
    if isinstance(after, UnsetType):
        return None
    text, _, direction = after.partition("_")
    request_id = parse_uuid(text)
    if request_id is None or direction not in set(Direction):
        raise UnknownCursor
    found = service.place_of(RequestId(request_id), Direction(direction))
    if found is None:
        raise UnknownCursor
    return found


def action(mode: Mode, outcome: Outcome) -> Literal["blocked", "would_block", "allowed"]:
    """What the caller felt of it, or would have."""
    is_refusal = outcome in {Outcome.MATCH, Outcome.FAILED}
    if mode is Mode.ENFORCING:
        return "blocked" if is_refusal else "allowed"
    return "would_block" if outcome is Outcome.MATCH else "allowed"


def decision(told: ToldDecision) -> wire.PolicyDecision:
    """A match or a failure."""
    found: PolicyDecision = told.decision
    return wire.PolicyDecision(
        id=decision_id(told.request_id, told.direction),
        created_at=unix_seconds(told.examined_at),
        request_id=str(told.request_id),
        policy_id=policy_id_text(found.policy_id),
        version=found.version,
        direction=told.direction.value,
        mode=found.mode.value,
        outcome="match" if found.outcome is Outcome.MATCH else "failed",
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


def rollups(tallies: Sequence[Tally]) -> wire.PolicyRollupPage:
    """One for each day, version, direction and mode."""
    return wire.PolicyRollupPage(data=[_rollup(tally) for tally in tallies])


def _rollup(tally: Tally) -> wire.PolicyRollup:
    return wire.PolicyRollup(
        start_time=_midnight(tally.day),
        end_time=_midnight(tally.day + timedelta(days=1)),
        version=tally.version,
        direction=tally.direction.value,
        mode=tally.mode.value,
        matches=tally.outcomes[Outcome.MATCH],
        no_matches=tally.outcomes[Outcome.NO_MATCH],
        failures=tally.outcomes[Outcome.FAILED],
        skipped=tally.outcomes[Outcome.SKIPPED],
        score_counts=list(tally.score_counts),
    )


def _midnight(day: date) -> int:
    return unix_seconds(datetime.combine(day, time(), UTC))
