"""Metrics of requests, keys, the ledger, backends, limits and jobs.

Every label has a bounded set of values, so that the number of series is bounded.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import cache
from typing import Final

from tollhouse.observability.buffered_metrics import (
    BufferedCounter,
    BufferedGauge,
    BufferedHistogram,
)
from tollhouse.observability.registry import registry

UNROUTED: Final = "none"
"""The operation label of a request that matched no route."""

_http_requests = BufferedCounter(
    "tollhouse_http_requests_total",
    "Requests answered, by outcome: succeeded, client_error, refused or failed.",
    ["operation", "status", "outcome"],
    registry=registry,
)
_http_request_seconds = BufferedHistogram(
    "tollhouse_http_request_seconds",
    "Time from the head of a request to the end of its response.",
    ["operation"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30, 120, 600),
    registry=registry,
)
_body_bytes = BufferedHistogram(
    "tollhouse_body_bytes",
    "Size of request bodies that were read completely.",
    buckets=(256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 33_554_432),
    registry=registry,
)
_key_lookups = BufferedCounter(
    "tollhouse_key_lookups_total",
    "Keys that were looked up, by outcome.",
    ["outcome"],
    registry=registry,
)
_key_lookup_batches = BufferedCounter(
    "tollhouse_key_lookup_batches_total", "Statements that looked keys up.", registry=registry
)
_key_lookup_batch_size = BufferedHistogram(
    "tollhouse_key_lookup_batch_size",
    "Keys per statement that looked keys up.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
    registry=registry,
)
_event_loop_stall_seconds = BufferedGauge(
    "tollhouse_event_loop_stall_seconds",
    "Longest time by which an event loop was late.",
    multiprocess_mode="max",
    registry=registry,
)
_database_pool_in_use = BufferedGauge(
    "tollhouse_database_pool_in_use",
    "Database connections that inference and records use.",
    multiprocess_mode="livesum",
    registry=registry,
)
_database_admin_pool_in_use = BufferedGauge(
    "tollhouse_database_admin_pool_in_use",
    "Database connections that Admin routes, reports and maintenance use.",
    multiprocess_mode="livesum",
    registry=registry,
)
_job_runs = BufferedCounter(
    "tollhouse_job_runs_total",
    "Runs of background jobs, by outcome.",
    ["job", "outcome"],
    registry=registry,
)
_ledger_batches = BufferedCounter(
    "tollhouse_ledger_batches_total",
    "Ledger statements with admissions and resolutions, by attempt: first or repeated.",
    ["attempt"],
    registry=registry,
)
_ledger_batch_size = BufferedHistogram(
    "tollhouse_ledger_batch_size",
    "Admissions and resolutions per statement.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128),
    registry=registry,
)
_admissions = BufferedCounter(
    "tollhouse_admissions_total",
    "Admission decisions, by verdict.",
    ["verdict"],
    registry=registry,
)
_resolutions = BufferedCounter(
    "tollhouse_resolutions_total",
    "Resolutions of holds, by kind and outcome.",
    ["kind", "outcome"],
    registry=registry,
)
_usage_estimated = BufferedCounter(
    "tollhouse_usage_estimated_total",
    "Requests charged by the gateway's own token count, because the backend reported no usage.",
    ["backend"],
    registry=registry,
)
_spending_alerts = BufferedCounter(
    "tollhouse_spending_alerts_total",
    "Alerts of caps and credits whose alert share was spent.",
    ["scope"],
    registry=registry,
)
_backend_calls = BufferedCounter(
    "tollhouse_backend_calls_total",
    "Calls to backends, by outcome.",
    ["backend", "outcome"],
    registry=registry,
)
_backend_retries = BufferedCounter(
    "tollhouse_backend_retries_total",
    "Retries of calls to backends.",
    ["backend"],
    registry=registry,
)
_backend_in_flight = BufferedGauge(
    "tollhouse_backend_in_flight",
    "Calls to backends that are in flight.",
    ["backend"],
    multiprocess_mode="livesum",
    registry=registry,
)
_backend_first_byte_seconds = BufferedHistogram(
    "tollhouse_backend_first_byte_seconds",
    "Time from a call to the first event of its stream, or to the head of its answer.",
    ["backend"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120),
    registry=registry,
)
_backend_replicas_avoided = BufferedGauge(
    "tollhouse_backend_replicas_avoided",
    "Replicas that get no calls but trials, by reason; the largest number of any worker.",
    ["backend", "reason"],
    multiprocess_mode="livemax",
    registry=registry,
)
_limit_refusals = BufferedCounter(
    "tollhouse_limit_refusals_total",
    "Requests that a rate limit refused, by kind and scope of the limit.",
    ["kind", "scope"],
    registry=registry,
)
_limits_fallback = BufferedGauge(
    "tollhouse_limits_fallback",
    "Workers that count traffic alone because Redis does not answer.",
    multiprocess_mode="livesum",
    registry=registry,
)
_limits_redis_seconds = BufferedHistogram(
    "tollhouse_limits_redis_seconds",
    "Time that Redis took for a batch of limit requests.",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1),
    registry=registry,
)
_activity_written = BufferedCounter(
    "tollhouse_activity_written_total", "Requests that were recorded.", registry=registry
)
_activity_dropped = BufferedCounter(
    "tollhouse_activity_dropped_total",
    "Requests that were not recorded, by reason.",
    ["reason"],
    registry=registry,
)


_FAULTS: Final = ("200", "500", "502", "503", "504")
"""The statuses of requests that failed: an answer that began and then failed keeps status 200."""


class LookupOutcome(StrEnum):
    """How a key was looked up: cached, found in the database, unknown, or the lookup failed."""

    CACHED = "cached"
    FOUND = "found"
    UNKNOWN = "unknown"
    FAILED = "failed"


class JobOutcome(StrEnum):
    """How a run of a background job ended."""

    DONE = "done"
    FAILED = "failed"


class ActivityLoss(StrEnum):
    """Why a request was not recorded: a full queue, a refusal of the database, or a stop."""

    NO_ROOM = "no_room"
    REFUSED = "refused"
    STOPPED = "stopped"


_requests_by_label: dict[tuple[str, int, str], BufferedCounter] = {}
_request_seconds_by_operation: dict[str, BufferedHistogram] = {}
_lookups_by_outcome: Final = {outcome: _key_lookups.labels(outcome) for outcome in LookupOutcome}
_activity_dropped.show_zeros(ActivityLoss)
_first_batches: Final = _ledger_batches.labels("first")
_repeated_batches: Final = _ledger_batches.labels("repeated")
# Finding a child by its labels costs as much as counting, so the few children are cached.
_admissions_of: Final = cache(_admissions.labels)
_resolutions_of: Final = cache(_resolutions.labels)


def operations_served(operations: Iterable[str]) -> None:
    """Show zeros for the failures of operations."""
    _http_requests.show_zeros((UNROUTED, *operations), _FAULTS, ("failed",))


def request_answered(operation: str | None, *, status: int, outcome: str, seconds: float) -> None:
    """Count one request. `operation` is None if no route matched; `outcome` is that of records."""
    name = operation or UNROUTED
    label = name, status, outcome
    requests = _requests_by_label.get(label)
    if requests is None:
        requests = _requests_by_label[label] = _http_requests.labels(*label)
    durations = _request_seconds_by_operation.get(name)
    if durations is None:
        durations = _request_seconds_by_operation[name] = _http_request_seconds.labels(name)
    requests.add()
    durations.record(seconds)


body_read: Final = _body_bytes.record
"""Count one request body that was read completely, by its size in bytes."""
key_found_in_cache: Final = _lookups_by_outcome[LookupOutcome.CACHED].add
"""Count one lookup of a key that needed no query."""


def key_looked_up(outcome: LookupOutcome) -> None:
    """Count one lookup of a key."""
    _lookups_by_outcome[outcome].add()


def key_lookup_batch_sent(size: int) -> None:
    """Count one statement that looked up `size` keys."""
    _key_lookup_batches.add()
    _key_lookup_batch_size.record(size)


def longest_stall(seconds: float) -> None:
    """Set the longest stall since the process started. The largest of all workers is shown."""
    _event_loop_stall_seconds.set(seconds)


def database_connections_in_use(count: int) -> None:
    """Set how many connections of the inference pool are in use."""
    _database_pool_in_use.set(count)


def admin_database_connections_in_use(count: int) -> None:
    """Set how many connections of the Admin pool are in use."""
    _database_admin_pool_in_use.set(count)


def ledger_batch_sent(size: int, *, is_retry: bool) -> None:
    """Count one statement with `size` admissions and resolutions."""
    (_repeated_batches if is_retry else _first_batches).add()
    _ledger_batch_size.record(size)


def admission_decided(verdict: int) -> None:
    """Count one verdict: 0 is admitted, 1 no credit, 10 and above a cap."""
    _admissions_of(verdict).add()


def hold_resolved(kind: str, outcome: str) -> None:
    """Count one resolution of a hold."""
    _resolutions_of(kind, outcome).add()


def usage_estimated(backend: str) -> None:
    """Count a request whose tokens the gateway counted, because its backend reported none."""
    _usage_estimated.labels(backend).add()


def spending_alerted(scope: str) -> None:
    """Count one alert of a cap or credit."""
    _spending_alerts.labels(scope).add()


def traffic_refused(kind: str, scope: str) -> None:
    """Count one request that a limit refused."""
    _limit_refusals.labels(kind, scope).add()


def limits_fallback(*, is_on: bool) -> None:
    """Set whether this process counts traffic alone although Redis is configured."""
    _limits_fallback.set(int(is_on))


def redis_answered(seconds: float) -> None:
    """Record the time of one batch that Redis answered."""
    _limits_redis_seconds.record(seconds)


def activity_written(count: int) -> None:
    """Add records that were written for the first time."""
    _activity_written.add(count)


def activity_dropped(count: int, loss: ActivityLoss) -> None:
    """Add records that were lost."""
    _activity_dropped.labels(loss).add(count)


def job_started(job: str) -> None:
    """Show zeros for a background job that has not run yet."""
    _job_runs.show_zeros((job,), JobOutcome)


def job_ran(job: str, outcome: JobOutcome) -> None:
    """Count one run of a background job. `job` is a constant name."""
    _job_runs.labels(job, outcome).add()


class BackendMetrics:
    """The metrics of one backend, labelled by its configured name."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._calls: dict[str, BufferedCounter] = {}
        self._retries = _backend_retries.labels(backend)
        self._in_flight = _backend_in_flight.labels(backend)
        self.answer_began: Final = _backend_first_byte_seconds.labels(backend).record
        """Record the seconds until an answer began."""

    def call_ended(self, outcome: str) -> None:
        """Count one call, with all its attempts."""
        calls = self._calls.get(outcome)
        if calls is None:
            calls = self._calls[outcome] = _backend_calls.labels(self._backend, outcome)
        calls.add()

    def retried(self) -> None:
        """Count a call that goes to another replica or model after a failure."""
        self._retries.add()

    def read_in_flight_from(self, source: Callable[[], int]) -> None:
        """Show what `source` returns as the calls of this process that are in flight."""
        self._in_flight.read_from(source)

    def replicas_avoided(self, reason: str, count: int) -> None:
        """Set how many replicas get no calls but trials, for one reason."""
        _backend_replicas_avoided.labels(self._backend, reason).set(count)
