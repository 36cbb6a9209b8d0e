"""Types for records of requests, their queries and their sums."""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

from msgspec import Struct

from tollhouse.base.attempts import Attempt
from tollhouse.base.ids import OrganizationId, ProjectId, ProjectKeyId, RequestId
from tollhouse.base.money import PicoUsd
from tollhouse.base.trace_context import TraceContext

LATENCY_BOUNDS_MS = (30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
"""The lower bounds of all buckets but the first, which begins at zero."""
FAILED_STATUS_MIN = 400


class FailureSource(StrEnum):
    """The party that caused a failure."""

    CALLER = "caller"
    GATEWAY = "gateway"
    BACKEND = "backend"


class RequestOutcome(StrEnum):
    """How a request ended. Each request has one outcome, so their counts add up."""

    SUCCEEDED = "succeeded"
    CLIENT_ERROR = "client_error"
    """The request was wrong, asked for what the model lacks, or its caller disconnected."""
    REFUSED = "refused"
    """A policy, a permission, a rate limit, a cap or the credit stopped it."""
    FAILED = "failed"
    """The gateway or a backend was at fault."""


# A Struct, because one is made for every request, and this takes a tenth of the time.
class RequestRecord(Struct, frozen=True, kw_only=True):
    """One finished request of a customer. Times are in milliseconds, or None if unknown.

    `status` is what the caller received, or 499 if the caller disconnected before the answer was
    complete. A `cost_pico_usd` of None means that the cost is not known yet, never zero. Input
    tokens do not include cached ones. `is_estimated` means that the gateway counted part of the
    tokens, because the engine did not report them. `error_param` is the parameter that the error
    names, in the caller's words. `requested_model` is what the caller named, if another model
    answered; `dropped_tools` are the types of the tools that were left out. `attempts` are
    all calls of backends, if there were several. `first_byte_ms` and `total_ms` count from the
    start of the request; the other times are durations. `trace_context`
    is set if spans are exported, and is not stored. `label` is what the caller sent in the header.
    """

    organization_id: OrganizationId
    request_id: RequestId
    project_id: ProjectId
    api_key_id: ProjectKeyId
    operation: str
    started_at: datetime
    status: int
    error_code: str | None = None
    error_param: str | None = None
    failed_by: FailureSource | None = None
    model: str | None = None
    backend: str | None = None
    replica: str | None = None
    is_stream: bool = False
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    is_estimated: bool = False
    cost_pico_usd: PicoUsd | None = None
    queue_ms: float | None = None
    admission_ms: float | None = None
    judging_ms: float | None = None
    first_byte_ms: float | None = None
    total_ms: float = 0.0
    requested_model: str | None = None
    dropped_tools: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    label: str | None = None
    trace_context: TraceContext | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusRange:
    """The statuses from `lowest` to `highest`, both included."""

    lowest: int
    highest: int

    @property
    def are_failures(self) -> bool:
        """Whether every status of the range is a failure."""
        return self.lowest >= FAILED_STATUS_MIN


ALL_STATUSES = StatusRange(lowest=100, highest=599)


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordFilter:
    """The requests to return. None matches all requests.

    `start` and `end` bound the instant at which a request began; `end` is not included. A search
    with `request_ids` examines only these requests.
    """

    statuses: StatusRange = ALL_STATUSES
    project_id: ProjectId | None = None
    api_key_id: ProjectKeyId | None = None
    model: str | None = None
    operation: str | None = None
    label: str | None = None
    error_code: str | None = None
    outcome: RequestOutcome | None = None
    start: datetime | None = None
    end: datetime | None = None
    request_ids: tuple[RequestId, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordCursor:
    """The start of a search: it returns requests before this one, of this day or earlier."""

    request_id: UUID
    day: date


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordPage:
    """A page of requests, newest first. The next page begins after `last_id`.

    If the page is not full, `last_id` is where the search stopped, even if the filter does not
    match that request.
    """

    records: tuple[RequestRecord, ...]
    has_more: bool
    last_id: RequestId | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordGap:
    """Requests without a record: when the first and the last of them began, and their number.

    They may belong to any organization.
    """

    first_at: datetime
    last_at: datetime
    records: int


class RecordGrouping(StrEnum):
    """The field by which sums are grouped."""

    PROJECT = "project_id"
    KEY = "api_key_id"
    MODEL = "model"


@dataclass(frozen=True, kw_only=True, slots=True)
class HourRange:
    """Whole UTC hours, in Unix seconds; `end` is not included."""

    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class HourlyCount:
    """The requests of one hour, group and outcome.

    `group` is None without grouping, and empty if the model is unknown.
    """

    hour: int
    group: str | None
    status: int
    error_code: str | None
    requests: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    total_ms: float
    latency_counts: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureCount:
    """The number of requests that ended with one status and error code."""

    status: int
    error_code: str | None
    requests: int


@dataclass(frozen=True, kw_only=True, slots=True)
class HourlyTotal:
    """All requests of one hour and group. Those in no count of an outcome succeeded."""

    hour: int
    group: str | None
    requests: int
    failed: int
    refused: int
    client_errors: int
    failures: tuple[FailureCount, ...]
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    total_ms: float
    latency_counts: tuple[int, ...]
