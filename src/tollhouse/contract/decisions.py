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
    """Whether the request or the response was judged."""
    mode: DecisionMode
    """Whether the policy recorded matches or refused them."""
    outcome: Literal["match", "failed"]
    """Whether the policy matched or could not be evaluated."""
    action: Literal["blocked", "would_block", "allowed"]
    """What the caller noticed: a refusal, what would have been one, or nothing."""
    reason: str | None
    """Why it could not be evaluated, or null."""
    match_threshold_basis_points: int | None
    """The score from which it matched, or null if it did not matter."""
    score_basis_points: int | None
    lowest_basis_points: int | None
    highest_basis_points: int | None
    coverage_basis_points: int | None
    windows: NonNegative
    """The number of pieces in which the content was judged."""
    cached: bool
    """Whether an earlier verdict on the same content was used."""
    project_id: str
    """The project of the request."""
    api_key_id: str
    """The key of the request."""


class PolicyDecisionList(ListPage, frozen=True, kw_only=True):
    """A page of decisions, newest first."""

    mark: ClassVar[Meta] = extension("OQ-176")

    data: list[PolicyDecision]


class PolicyRollupsQuery(Struct, frozen=True, kw_only=True):
    """The range of a policy report. Every UTC day that it touches is counted as a whole."""

    mark: ClassVar[Meta] = extension("OQ-177")

    start_time: ReportInstant
    """The beginning of the range, in Unix seconds."""
    end_time: ReportInstant | UnsetType = UNSET
    """The second after the range. Without it, the range ends with the present second."""


class PolicyRollup(Struct, frozen=True, kw_only=True):
    """Decisions of one version on one UTC day. `score_counts` counts scores by hundredths."""

    mark: ClassVar[Meta] = extension("OQ-177")

    object: Literal["organization.policy.rollup"] = "organization.policy.rollup"
    start_time: int
    end_time: int
    version: int
    direction: JudgedDirection
    """Whether requests or responses were judged."""
    mode: DecisionMode
    """Whether the policy recorded matches or refused them."""
    matches: NonNegative
    """Evaluations that matched."""
    no_matches: NonNegative
    """Evaluations that did not match."""
    failures: NonNegative
    """Evaluations without a verdict."""
    skipped: NonNegative
    """Requests for which the judge was not asked."""
    score_counts: list[NonNegative]
    """Evaluations by score, in 100 places of a hundredth each."""


class PolicyRollupPage(Struct, frozen=True, kw_only=True):
    """The days of the range that have decisions."""

    mark: ClassVar[Meta] = extension("OQ-177")

    object: Literal["page"] = "page"
    data: list[PolicyRollup]
