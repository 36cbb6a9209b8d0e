"""The wire types of request records and of their hourly sums."""

from typing import ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import (
    PAGE_SIZE_DEFAULT,
    ErrorCode,
    ModelName,
    NonNegative,
    OperationName,
    PageSize,
    PathId,
    ReportInstant,
    StatusFilter,
)
from tollhouse.contract.decisions import DecisionMode, JudgedDirection
from tollhouse.contract.listing import ListPage
from tollhouse.contract.money import Money
from tollhouse.contract.origins import extension

RequestGrouping = Literal["project_id", "api_key_id", "model"]


class RequestsQuery(Struct, frozen=True, kw_only=True):
    """The page and the filters of a list of requests. A request must match every filter.

    `policy_id` matches requests on which this policy matched or could not be evaluated. A request
    belongs to the instant at which it began; `end_time` is not included.
    """

    mark: ClassVar[Meta] = extension("OQ-174")

    after: PathId | UnsetType = UNSET
    limit: PageSize = PAGE_SIZE_DEFAULT
    status: StatusFilter | UnsetType = UNSET
    project_id: PathId | UnsetType = UNSET
    api_key_id: PathId | UnsetType = UNSET
    model: ModelName | UnsetType = UNSET
    operation: OperationName | UnsetType = UNSET
    error_code: ErrorCode | UnsetType = UNSET
    policy_id: PathId | UnsetType = UNSET
    start_time: ReportInstant | UnsetType = UNSET
    end_time: ReportInstant | UnsetType = UNSET


class RequestTimings(Struct, frozen=True, kw_only=True):
    """Times in milliseconds. First byte and total count from the start of the request."""

    mark: ClassVar[Meta] = extension("OQ-173")

    queue_ms: float | None
    admission_ms: float | None
    judging_ms: float | None
    first_byte_ms: float | None
    total_ms: float


class RequestTokens(Struct, frozen=True, kw_only=True):
    """Token counts. `input` does not include `cached_input`; null means unknown."""

    mark: ClassVar[Meta] = extension("OQ-173")

    input: NonNegative | None
    cached_input: NonNegative | None
    output: NonNegative | None


class BlockingPolicy(Struct, frozen=True, kw_only=True):
    """An enforcing policy that matched or could not be evaluated, with its current name.

    It matched because its score reached the threshold; both are basis points. `reason` says why it
    could not be evaluated.
    """

    mark: ClassVar[Meta] = extension("OQ-173")

    id: str
    name: str
    version: int
    direction: JudgedDirection
    outcome: Literal["match", "failed"]
    score_basis_points: int | None
    match_threshold_basis_points: int
    reason: str | None


class RequestDecision(Struct, frozen=True, kw_only=True):
    """The decision of one policy about a request. The threshold is null if it did not matter."""

    mark: ClassVar[Meta] = extension("OQ-173")

    id: str
    name: str
    version: int
    outcome: Literal["match", "no_match", "failed", "skipped"]
    score_basis_points: int | None
    match_threshold_basis_points: int | None
    reason: str | None


class RequestEvaluation(Struct, frozen=True, kw_only=True):
    """The decisions of all policies of one mode about a request or its response.

    `judging_ms` is the time that they took together. Monitoring takes place beside the request.
    """

    mark: ClassVar[Meta] = extension("OQ-173")

    direction: JudgedDirection
    mode: DecisionMode
    judging_ms: float
    decisions: list[RequestDecision]


class RequestAttempt(Struct, frozen=True, kw_only=True):
    """One call of a backend. `replica` is null if none could be called."""

    mark: ClassVar[Meta] = extension("OQ-173")

    model: str
    replica: str | None
    outcome: str
    ms: float


class RequestRecord(Struct, frozen=True, kw_only=True):
    """One finished request. `status` is 499 if the caller disconnected; `cost` is null if unknown.

    `estimated` is true if the gateway counted some of the tokens, because the engine did not.
    `blocked_by` lists the policies that refused the request or withheld its answer. `error_param`
    is the parameter that the error names, shortened. `model` is the model that answered, and
    `requested_model` what the caller named, if that was an alias or another model. `dropped_tools`
    are the types of the tools that the model does not have and that were left out. `attempts` are
    all calls of backends in their order, if there were several.
    """

    mark: ClassVar[Meta] = extension("OQ-173")

    id: str
    object: Literal["organization.request"] = "organization.request"
    created_at: int
    operation: str
    status: int
    error_code: str | None
    error_param: str | None
    failed_by: Literal["caller", "gateway", "backend"] | None
    blocked_by: list[BlockingPolicy]
    model: str | None
    requested_model: str | None
    dropped_tools: list[str]
    attempts: list[RequestAttempt]
    backend: str | None
    replica: str | None
    stream: bool
    tokens: RequestTokens
    estimated: bool
    cost: Money | None
    timings: RequestTimings
    project_id: str
    api_key_id: str


class RequestDetails(RequestRecord, frozen=True, kw_only=True):
    """One finished request, with the decisions of every policy that evaluated it."""

    mark: ClassVar[Meta] = extension("OQ-173")

    evaluations: list[RequestEvaluation]


class RequestGap(Struct, frozen=True, kw_only=True):
    """A time in which requests may be without a record, of this organization or of another."""

    mark: ClassVar[Meta] = extension("OQ-212")

    start_time: int
    end_time: int


class RequestRecordList(ListPage, frozen=True, kw_only=True):
    """A page of requests, newest first. It may be short or empty although `has_more` is true.

    `last_id` is then the last request that was compared with the filters. `gaps` are the latest
    times for which records were dropped, newest first.
    """

    mark: ClassVar[Meta] = extension("OQ-174")

    data: list[RequestRecord]
    gaps: list[RequestGap]


class RequestRollupsQuery(Struct, frozen=True, kw_only=True):
    """The range of a request report. Every UTC hour that it touches is counted as a whole."""

    mark: ClassVar[Meta] = extension("OQ-175")

    start_time: ReportInstant
    end_time: ReportInstant | UnsetType = UNSET
    group_by: RequestGrouping | UnsetType = UNSET


class RequestFailures(Struct, frozen=True, kw_only=True):
    """The number of requests that failed with one status and code."""

    mark: ClassVar[Meta] = extension("OQ-175")

    status: int
    error_code: str | None
    requests: NonNegative


class RequestRollup(Struct, frozen=True, kw_only=True):
    """Requests of one group in one hour. Fields that are not in `group_by` are null.

    `failed` counts faults of the gateway and its backends, `client_errors` mistakes of callers.
    `latency_counts` counts requests by total time, one count for each of `latency_bounds_ms` and
    one for slower requests.
    """

    mark: ClassVar[Meta] = extension("OQ-175")

    object: Literal["organization.requests.result"] = "organization.requests.result"
    requests: NonNegative
    failed: NonNegative
    client_errors: NonNegative
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
    """One UTC hour. An hour without requests has no results."""

    mark: ClassVar[Meta] = extension("OQ-175")

    object: Literal["bucket"] = "bucket"
    start_time: int
    end_time: int
    results: list[RequestRollup]


class RequestRollupPage(Struct, frozen=True, kw_only=True):
    """The hours of the range."""

    mark: ClassVar[Meta] = extension("OQ-175")

    object: Literal["page"] = "page"
    latency_bounds_ms: list[int]
    data: list[RequestRollupBucket]
