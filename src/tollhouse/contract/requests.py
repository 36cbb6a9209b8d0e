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
    RequestLabel,
    StatusFilter,
)
from tollhouse.contract.decisions import DecisionMode, JudgedDirection
from tollhouse.contract.listing import ListPage
from tollhouse.contract.money import Money
from tollhouse.contract.origins import extension

Outcome = Literal["succeeded", "client_error", "refused", "failed"]
RequestGrouping = Literal["project_id", "api_key_id", "model"]


class RequestsQuery(Struct, frozen=True, kw_only=True):
    """The page and the filters of a list of requests. A request must match every filter."""

    mark: ClassVar[Meta] = extension("OQ-174")

    after: PathId | UnsetType = UNSET
    limit: PageSize = PAGE_SIZE_DEFAULT
    status: StatusFilter | UnsetType = UNSET
    """A status such as 503, or a class such as `5xx`."""
    project_id: PathId | UnsetType = UNSET
    """Only requests of this project."""
    api_key_id: PathId | UnsetType = UNSET
    """Only requests of this key."""
    model: ModelName | UnsetType = UNSET
    """Only requests that this model answered."""
    operation: OperationName | UnsetType = UNSET
    """Only requests of this operation, such as `createChatCompletion`."""
    label: RequestLabel | UnsetType = UNSET
    """Only requests with this label."""
    error_code: ErrorCode | UnsetType = UNSET
    """Only requests with this error code."""
    outcome: Outcome | UnsetType = UNSET
    """Only requests that ended so."""
    policy_id: PathId | UnsetType = UNSET
    """Only requests on which this policy matched or could not be evaluated."""
    start_time: ReportInstant | UnsetType = UNSET
    """Only requests that began at this second or later, in Unix seconds."""
    end_time: ReportInstant | UnsetType = UNSET
    """Only requests that began before this second, in Unix seconds."""


class RequestTimings(Struct, frozen=True, kw_only=True):
    """Times in milliseconds."""

    mark: ClassVar[Meta] = extension("OQ-173")

    queue_ms: float | None
    """From the start until its rate limits let it in; null if they did not."""
    admission_ms: float | None
    """From there until its cost was held; null if that was not reached."""
    judging_ms: float | None
    """From there until its policies were evaluated; null if they were not."""
    first_byte_ms: float | None
    """From the start to the first byte of the answer; null if none was sent."""
    total_ms: float
    """From the start to the end of the request."""


class RequestTokens(Struct, frozen=True, kw_only=True):
    """Token counts. Null means unknown."""

    mark: ClassVar[Meta] = extension("OQ-173")

    input: NonNegative | None
    """Tokens that were read, without those from a cache."""
    cached_input: NonNegative | None
    """Tokens that were read from a cache."""
    output: NonNegative | None
    """Tokens that were written."""


class BlockingPolicy(Struct, frozen=True, kw_only=True):
    """An enforcing policy that matched or could not be evaluated."""

    mark: ClassVar[Meta] = extension("OQ-173")

    id: str
    name: str
    """What the policy is called now."""
    version: int
    direction: JudgedDirection
    """Whether the request or the response was judged."""
    outcome: Literal["match", "failed"]
    """Whether the policy matched or could not be evaluated."""
    score_basis_points: int | None
    match_threshold_basis_points: int
    reason: str | None
    """Why it could not be evaluated, or null."""


class RequestDecision(Struct, frozen=True, kw_only=True):
    """The decision of one policy about a request."""

    mark: ClassVar[Meta] = extension("OQ-173")

    id: str
    name: str
    """What the policy is called now."""
    version: int
    outcome: Literal["match", "no_match", "failed", "skipped"]
    """What the judge found; `skipped` if it was not asked."""
    score_basis_points: int | None
    match_threshold_basis_points: int | None
    """The score from which it matches, or null if it did not matter."""
    reason: str | None
    """Why it was skipped or could not be evaluated, or null."""


class RequestEvaluation(Struct, frozen=True, kw_only=True):
    """The decisions of all policies of one mode. Monitoring takes place beside the request."""

    mark: ClassVar[Meta] = extension("OQ-173")

    direction: JudgedDirection
    """Whether the request or the response was judged."""
    mode: DecisionMode
    """Whether these policies record matches or refuse them."""
    judging_ms: float
    """The milliseconds that all decisions together took."""
    decisions: list[RequestDecision]
    """One for each policy."""


class RequestAttempt(Struct, frozen=True, kw_only=True):
    """One call of a backend."""

    mark: ClassVar[Meta] = extension("OQ-173")

    model: str
    """The model that was called: the named one or a fallback."""
    replica: str | None
    """The replica that was called, or null if none could be."""
    outcome: str
    """How the call ended."""
    ms: float
    """The milliseconds that the call took."""


class RequestRecord(Struct, frozen=True, kw_only=True):
    """One finished request."""

    mark: ClassVar[Meta] = extension("OQ-173")

    id: str
    """The value of `X-Request-ID` in the answer."""
    object: Literal["organization.request"] = "organization.request"
    created_at: int
    """When the request began, in Unix seconds."""
    operation: str
    """The `operationId` of the route."""
    status: int
    """The status of the answer, or 499 if the caller disconnected."""
    outcome: Outcome
    """How it ended: `failed` by a fault of the gateway or a backend; `refused` by a policy, a
    permission, a rate limit, a cap or the credit; `client_error` by a mistake or the departure of
    the caller."""
    error_code: str | None
    """The code of the failure, or null."""
    error_param: str | None
    """The parameter that the error names, shortened, or null."""
    failed_by: Literal["caller", "gateway", "backend"] | None
    """The side that caused the error, or null if there was none."""
    blocked_by: list[BlockingPolicy]
    """The policies that refused the request or withheld its answer."""
    model: str | None
    """The model that answered, or null if none did."""
    requested_model: str | None
    """What the caller named, if that was an alias or another model, or null."""
    label: str | None
    """What the caller sent in the header `X-Tollhouse-Label`, or null."""
    dropped_tools: list[str]
    """The types of tools that the model does not have and that were left out."""
    attempts: list[RequestAttempt]
    """All calls of backends in their order, if there were several."""
    backend: str | None
    """The backend of the model, or null."""
    replica: str | None
    """The replica that answered, or null."""
    stream: bool
    """Whether the caller asked for a stream."""
    tokens: RequestTokens
    """What was read and written."""
    estimated: bool
    """Whether the gateway counted some of the tokens, because the engine did not."""
    cost: Money | None
    """What the request cost, or null if that is not known."""
    timings: RequestTimings
    """Where the time went."""
    project_id: str
    """The project of the key."""
    api_key_id: str
    """The key that the request came with."""


class RequestDetails(RequestRecord, frozen=True, kw_only=True):
    """One finished request, with the decisions of every policy that evaluated it."""

    mark: ClassVar[Meta] = extension("OQ-173")

    evaluations: list[RequestEvaluation]
    """The decisions of every policy that evaluated the request."""


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
    """The latest times for which records were dropped, newest first."""


class RequestRollupsQuery(Struct, frozen=True, kw_only=True):
    """The range of a request report. Every UTC hour that it touches is counted as a whole."""

    mark: ClassVar[Meta] = extension("OQ-175")

    start_time: ReportInstant
    """The beginning of the range, in Unix seconds."""
    end_time: ReportInstant | UnsetType = UNSET
    """The second after the range. Without it, the range ends with the present second."""
    group_by: RequestGrouping | UnsetType = UNSET
    """Split each hour by this field."""


class RequestFailures(Struct, frozen=True, kw_only=True):
    """The number of requests that ended with one status and error code."""

    mark: ClassVar[Meta] = extension("OQ-175")

    status: int
    """The status of the answers."""
    error_code: str | None
    """The code of the errors, or null."""
    requests: NonNegative


class RequestRollup(Struct, frozen=True, kw_only=True):
    """Requests of one group in one hour."""

    mark: ClassVar[Meta] = extension("OQ-175")

    object: Literal["organization.requests.result"] = "organization.requests.result"
    requests: NonNegative
    failed: NonNegative
    """Requests that failed by faults of the gateway or its backends."""
    refused: NonNegative
    """Requests that a policy, a permission, a rate limit, a cap or the credit stopped."""
    client_errors: NonNegative
    """Requests that were wrong, or whose caller disconnected. None of these counts has a request
    of another one."""
    failures: list[RequestFailures]
    """All of these by status and code, but answers that broke off after status 200."""
    input_tokens: NonNegative
    """Tokens that were read, without those from a cache."""
    cached_input_tokens: NonNegative
    """Tokens that were read from a cache."""
    output_tokens: NonNegative
    mean_total_ms: float
    """The mean of the total times, in milliseconds."""
    latency_counts: list[NonNegative]
    """Requests by total time: one count for each bound, and one for slower requests."""
    project_id: str | None
    """The project of the group, or null unless grouped by it."""
    api_key_id: str | None
    """The key of the group, or null unless grouped by it."""
    model: str | None
    """The model of the group, or null unless grouped by it."""


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
    """The upper bounds of `latency_counts`, in milliseconds."""
    data: list[RequestRollupBucket]
