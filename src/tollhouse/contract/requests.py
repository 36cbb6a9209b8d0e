"""What became of requests: single ones by their ID, and sums by the hour."""

from typing import ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import (
    PAGE_SIZE_DEFAULT,
    ModelName,
    NonNegative,
    OperationName,
    PageSize,
    PathId,
    ReportInstant,
    StatusFilter,
)
from tollhouse.contract.listing import ListPage
from tollhouse.contract.money import Money
from tollhouse.contract.origins import extension

RequestGrouping = Literal["project_id", "api_key_id", "model"]


class RequestsQuery(Struct, frozen=True, kw_only=True):
    """Newest first; only requests that fit every filter."""

    mark: ClassVar[Meta] = extension("OQ-174")

    after: PathId | UnsetType = UNSET
    limit: PageSize = PAGE_SIZE_DEFAULT
    status: StatusFilter | UnsetType = UNSET
    project_id: PathId | UnsetType = UNSET
    api_key_id: PathId | UnsetType = UNSET
    model: ModelName | UnsetType = UNSET
    operation: OperationName | UnsetType = UNSET


class RequestTimings(Struct, frozen=True, kw_only=True):
    """Milliseconds. First byte and total count from the start, the others are lengths."""

    mark: ClassVar[Meta] = extension("OQ-173")

    queue_ms: float | None
    admission_ms: float | None
    judging_ms: float | None
    first_byte_ms: float | None
    total_ms: float


class RequestTokens(Struct, frozen=True, kw_only=True):
    """Input does not include cached input; null is not known."""

    mark: ClassVar[Meta] = extension("OQ-173")

    input: NonNegative | None
    cached_input: NonNegative | None
    output: NonNegative | None


class BlockingPolicy(Struct, frozen=True, kw_only=True):
    """An enforcing policy that matched or could not be evaluated, by the name that it has now."""

    mark: ClassVar[Meta] = extension("OQ-173")

    id: str
    name: str
    version: int
    direction: Literal["request", "response"]
    outcome: Literal["match", "failed"]


class RequestRecord(Struct, frozen=True, kw_only=True):
    """One request, as it ended. A `status` of 499: the caller left. A `cost` of null: not known.

    `estimated` says that the gateway counted part of the tokens, because the engine did not.
    `blocked_by` has the policies that refused the request or withheld its answer.
    """

    mark: ClassVar[Meta] = extension("OQ-173")

    id: str
    object: Literal["organization.request"] = "organization.request"
    created_at: int
    operation: str
    status: int
    error_code: str | None
    failed_by: Literal["caller", "gateway", "backend"] | None
    blocked_by: list[BlockingPolicy]
    model: str | None
    backend: str | None
    replica: str | None
    stream: bool
    tokens: RequestTokens
    estimated: bool
    cost: Money | None
    timings: RequestTimings
    project_id: str
    api_key_id: str


class RequestRecordList(ListPage, frozen=True, kw_only=True):
    """A page may hold fewer than asked for, even none, while `has_more` is true.

    `last_id` then is the last request that was looked at.
    """

    mark: ClassVar[Meta] = extension("OQ-174")

    data: list[RequestRecord]


class RequestRollupsQuery(Struct, frozen=True, kw_only=True):
    """The hours that a range touches, each counted whole."""

    mark: ClassVar[Meta] = extension("OQ-175")

    start_time: ReportInstant
    end_time: ReportInstant | UnsetType = UNSET
    group_by: RequestGrouping | UnsetType = UNSET


class RequestFailures(Struct, frozen=True, kw_only=True):
    """How many ended in one failure."""

    mark: ClassVar[Meta] = extension("OQ-175")

    status: int
    error_code: str | None
    requests: NonNegative


class RequestRollup(Struct, frozen=True, kw_only=True):
    """One group of one hour; the fields that were not grouped by are null.

    `latency_counts` are requests by total time: each up to its bound, the last one above all.
    """

    mark: ClassVar[Meta] = extension("OQ-175")

    object: Literal["organization.requests.result"] = "organization.requests.result"
    requests: NonNegative
    failures: list[RequestFailures]
    input_tokens: NonNegative
    cached_input_tokens: NonNegative
    output_tokens: NonNegative
    mean_total_ms: float
    latency_counts: list[NonNegative]
    project_id: str | None
    api_key_id: str | None
    model: str | None


class RequestRollupBucket(Struct, frozen=True, kw_only=True):
    """One UTC hour; one without requests has no results."""

    mark: ClassVar[Meta] = extension("OQ-175")

    object: Literal["bucket"] = "bucket"
    start_time: int
    end_time: int
    results: list[RequestRollup]


class RequestRollupPage(Struct, frozen=True, kw_only=True):
    """All hours of the range."""

    mark: ClassVar[Meta] = extension("OQ-175")

    object: Literal["page"] = "page"
    latency_bounds_ms: list[int]
    data: list[RequestRollupBucket]
