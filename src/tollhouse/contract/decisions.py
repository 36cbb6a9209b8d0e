"""What policies decided: matches and failures one by one, all of it in sums by the day."""

from typing import ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import NonNegative, ReportInstant
from tollhouse.contract.listing import ListPage
from tollhouse.contract.origins import extension

JudgedDirection = Literal["request", "response"]
DecisionMode = Literal["monitoring", "enforcing"]


class PolicyDecision(Struct, frozen=True, kw_only=True):
    """One match or failure. Scores are basis points; what was decided about is not kept."""

    mark: ClassVar[Meta] = extension("OQ-176")

    id: str
    object: Literal["organization.policy.decision"] = "organization.policy.decision"
    created_at: int
    request_id: str
    policy_id: str
    version: int
    direction: JudgedDirection
    mode: DecisionMode
    outcome: Literal["match", "failed"]
    action: Literal["blocked", "would_block", "allowed"]
    reason: str | None
    match_threshold_basis_points: int | None
    score_basis_points: int | None
    lowest_basis_points: int | None
    highest_basis_points: int | None
    coverage_basis_points: int | None
    windows: NonNegative
    cached: bool
    project_id: str
    api_key_id: str


class PolicyDecisionList(ListPage, frozen=True, kw_only=True):
    """Newest first."""

    mark: ClassVar[Meta] = extension("OQ-176")

    data: list[PolicyDecision]


class PolicyRollupsQuery(Struct, frozen=True, kw_only=True):
    """The days that a range touches, each counted whole."""

    mark: ClassVar[Meta] = extension("OQ-177")

    start_time: ReportInstant
    end_time: ReportInstant | UnsetType = UNSET


class PolicyRollup(Struct, frozen=True, kw_only=True):
    """One UTC day of one version. `score_counts` has a place for each hundredth of all scores."""

    mark: ClassVar[Meta] = extension("OQ-177")

    object: Literal["organization.policy.rollup"] = "organization.policy.rollup"
    start_time: int
    end_time: int
    version: int
    direction: JudgedDirection
    mode: DecisionMode
    matches: NonNegative
    no_matches: NonNegative
    failures: NonNegative
    skipped: NonNegative
    score_counts: list[NonNegative]


class PolicyRollupPage(Struct, frozen=True, kw_only=True):
    """All days of the range that have decisions."""

    mark: ClassVar[Meta] = extension("OQ-177")

    object: Literal["page"] = "page"
    data: list[PolicyRollup]
