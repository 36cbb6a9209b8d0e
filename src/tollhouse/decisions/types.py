"""Nouns of what was decided, by whom, about which request."""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

from tollhouse.base.ids import (
    OrganizationId,
    PolicyId,
    ProjectId,
    ProjectKeyId,
    RequestId,
    minted_at,
)


class Direction(StrEnum):
    """What was judged: what went to the model, or what came back."""

    REQUEST = "request"
    RESPONSE = "response"


class Mode(StrEnum):
    """Whether the decision counted for the caller."""

    MONITORING = "monitoring"
    ENFORCING = "enforcing"


class Outcome(StrEnum):
    """What is known of a policy. What was skipped could not have changed anything."""

    MATCH = "match"
    NO_MATCH = "no_match"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyDecision:
    """One policy. Scores are basis points; the truth lies between the lowest and the highest.

    What is kept of a policy that did not match is its score alone.
    """

    policy_id: PolicyId
    version: int
    mode: Mode
    outcome: Outcome
    threshold: int | None = None
    score: int | None = None
    lowest: int | None = None
    highest: int | None = None
    coverage: int | None = None
    reason: str | None = None
    windows: int = 0
    is_cached: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Examination:
    """All policies of one mode on one content, of which a keyed digest is all that is kept.

    Content that could not be shown to a judge has no digest.
    """

    organization_id: OrganizationId
    request_id: RequestId
    project_id: ProjectId
    api_key_id: ProjectKeyId
    direction: Direction
    mode: Mode
    examined_at: datetime
    judging_ms: float
    decisions: tuple[PolicyDecision, ...]
    content_digest: bytes | None = None
    characters: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ToldDecision:
    """A match or a failure, and the request that it was about."""

    request_id: RequestId
    direction: Direction
    project_id: ProjectId
    api_key_id: ProjectKeyId
    examined_at: datetime
    decision: PolicyDecision


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockingDecision:
    """An enforcing policy that matched or failed, with the policy's present name."""

    request_id: RequestId
    policy_id: PolicyId
    name: str
    version: int
    direction: Direction
    outcome: Outcome


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a page begins: before this decision, in this day or an earlier one."""

    day: date
    request_id: UUID
    direction: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Days:
    """Whole UTC days; the end is the first that is not part of it."""

    first: date
    end: date


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """Decisions of one day, version, direction, mode, outcome and hundredth of all scores."""

    day: date
    version: int
    direction: Direction
    mode: Mode
    outcome: Outcome
    bin: int | None
    decisions: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """One day of one version in one direction and mode. `score_counts` has a hundred places."""

    day: date
    version: int
    direction: Direction
    mode: Mode
    outcomes: dict[Outcome, int]
    score_counts: tuple[int, ...]


def day_of(request_id: RequestId) -> date | None:
    """The UTC day in which the gateway minted the ID; nothing for one that is not ours."""
    at = minted_at(request_id)
    return None if at is None else at.date()
