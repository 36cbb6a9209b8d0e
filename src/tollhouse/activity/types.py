"""What is kept of a request, what is asked about requests, and what answers that."""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

from msgspec import Struct

from tollhouse.base.ids import OrganizationId, ProjectId, ProjectKeyId, RequestId, minted_at
from tollhouse.base.money import PicoUsd

LATENCY_BOUNDS_MS = (30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
"""Each is the first time of its bucket; the first bucket begins at zero."""
FAILED_STATUS_MIN = 400


class Culprit(StrEnum):
    """Who failed, if anybody did."""

    CALLER = "caller"
    GATEWAY = "gateway"
    BACKEND = "backend"


# Made for every request, which a Struct is in a tenth of the time.
class RequestRecord(Struct, frozen=True, kw_only=True):
    """One request of a customer, as it ended. Times are milliseconds; unknown ones are nothing.

    `status` is what the caller got; 499 where the caller left before the answer was complete.
    `cost_pico_usd` of nothing means that it is not known yet, never zero. Input tokens do not
    include cached ones. `is_estimated` says that the gateway counted part of the tokens, because
    the engine did not report them. `first_byte_ms` and `total_ms` count from the start of the
    request, the other times are lengths.
    """

    organization_id: OrganizationId
    request_id: RequestId
    project_id: ProjectId
    api_key_id: ProjectKeyId
    operation: str
    started_at: datetime
    status: int
    error_code: str | None = None
    culprit: Culprit | None = None
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


def day_of(request_id: UUID) -> date | None:
    """The UTC day that holds the request; nothing for an ID that we never minted."""
    at = minted_at(request_id)
    return None if at is None else at.date()


@dataclass(frozen=True, kw_only=True, slots=True)
class Statuses:
    """From the lowest to the highest, both included."""

    lowest: int
    highest: int

    @property
    def are_failures(self) -> bool:
        """Whether only failures can have such a status."""
        return self.lowest >= FAILED_STATUS_MIN


ALL_STATUSES = Statuses(lowest=100, highest=599)


@dataclass(frozen=True, kw_only=True, slots=True)
class Filter:
    """Which requests are wanted; nothing means all."""

    statuses: Statuses = ALL_STATUSES
    project_id: ProjectId | None = None
    api_key_id: ProjectKeyId | None = None
    model: str | None = None
    operation: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a search begins: before this request, in this day or an earlier one."""

    request_id: UUID
    day: date


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordPage:
    """Newest first. The next page begins after `last_id`, which a filter may have passed over."""

    records: tuple[RequestRecord, ...]
    has_more: bool
    last_id: RequestId | None


class Grouping(StrEnum):
    """By what sums can be kept apart."""

    PROJECT = "project_id"
    KEY = "api_key_id"
    MODEL = "model"


@dataclass(frozen=True, kw_only=True, slots=True)
class Hours:
    """Whole UTC hours, in Unix seconds; the end is the first hour that is not part of it."""

    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """Requests of one hour, group and outcome. `group` is empty where nothing is known."""

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
class Failures:
    """How often requests ended in one way that is a failure."""

    status: int
    error_code: str | None
    requests: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """All requests of one hour and group."""

    hour: int
    group: str | None
    requests: int
    failures: tuple[Failures, ...]
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    total_ms: float
    latency_counts: tuple[int, ...]
