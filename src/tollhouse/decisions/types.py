"""Types for evaluations, decisions and their daily sums."""

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from tollhouse.base.ids import (
    OrganizationId,
    PolicyId,
    ProjectId,
    ProjectKeyId,
    RequestId,
)
from tollhouse.base.policies import EvaluationOutcome, JudgedDirection, Mode


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyDecision:
    """The decision of one policy. Scores are basis points, between `lowest` and `highest`.

    Only matches and failures are stored with all fields; other decisions only with version, outcome
    and score.
    """

    policy_id: PolicyId
    version: int
    mode: Mode
    outcome: EvaluationOutcome
    threshold: int | None = None
    score: int | None = None
    lowest: int | None = None
    highest: int | None = None
    coverage: int | None = None
    reason: str | None = None
    windows: int = 0
    is_cached: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationRecord:
    """The evaluation of all policies of one mode on one content.

    Only a keyed digest of the content is stored. Content that could not be shown to a judge has no
    digest.
    """

    organization_id: OrganizationId
    request_id: RequestId
    project_id: ProjectId
    api_key_id: ProjectKeyId
    direction: JudgedDirection
    mode: Mode
    evaluated_at: datetime
    judging_ms: float
    decisions: tuple[PolicyDecision, ...]
    content_digest: bytes | None = None
    characters: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportedDecision:
    """A match or a failure, with its request."""

    request_id: RequestId
    direction: JudgedDirection
    project_id: ProjectId
    api_key_id: ProjectKeyId
    evaluated_at: datetime
    decision: PolicyDecision


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockingDecision:
    """An enforcing policy that matched or failed, with its current name.

    `threshold` and `score` are basis points. A failed decision has a `reason` and no score.
    """

    request_id: RequestId
    policy_id: PolicyId
    name: str
    version: int
    direction: JudgedDirection
    outcome: EvaluationOutcome
    threshold: int
    score: int | None
    reason: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionCursor:
    """The start of a page: it has decisions before this one, of this day or earlier."""

    day: date
    request_id: UUID
    direction: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DayRange:
    """Whole UTC days; `end` is not included."""

    first: date
    end: date


@dataclass(frozen=True, kw_only=True, slots=True)
class DailyCount:
    """The number of decisions of one day, version, direction, mode, outcome and score bin."""

    day: date
    version: int
    direction: JudgedDirection
    mode: Mode
    outcome: EvaluationOutcome
    bin: int | None
    decisions: int


@dataclass(frozen=True, kw_only=True, slots=True)
class DailyTotal:
    """The totals of one day, version, direction and mode. `score_counts` has a hundred bins."""

    day: date
    version: int
    direction: JudgedDirection
    mode: Mode
    outcomes: dict[EvaluationOutcome, int]
    score_counts: tuple[int, ...]
