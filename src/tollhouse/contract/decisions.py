"""The wire types of policy decisions and of their daily sums."""

from typing import ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import NonNegative, ReportInstant
from tollhouse.contract.listing import ListPage
from tollhouse.contract.origins import extension

JudgedDirection = Literal["request", "response"]
DecisionMode = Literal["monitoring", "enforcing"]


class PolicyDecision(Struct, frozen=True, kw_only=True):
    """One match or failure of a policy. Scores are basis points. The content is not kept."""

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
    """A page of decisions, newest first."""

    mark: ClassVar[Meta] = extension("OQ-176")

    data: list[PolicyDecision]


class PolicyRollupsQuery(Struct, frozen=True, kw_only=True):
    """The range of a policy report. Every UTC day that it touches is counted as a whole."""

    mark: ClassVar[Meta] = extension("OQ-177")

    start_time: ReportInstant
    end_time: ReportInstant | UnsetType = UNSET


class PolicyRollup(Struct, frozen=True, kw_only=True):
    """Decisions of one version on one UTC day. `score_counts` counts scores by hundredths."""

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
    """The days of the range that have decisions."""

    mark: ClassVar[Meta] = extension("OQ-177")

    object: Literal["page"] = "page"
    data: list[PolicyRollup]
