"""What the process counts. Every label has a bounded set of values, so series cannot grow.

Workers write to files in the folder named by PROMETHEUS_MULTIPROC_DIR, which is set before they
start; the supervisor adds the files up. Without the variable a process counts for itself.
"""

from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final, Protocol, cast

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector

from tollhouse.observability.registry import registry

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
UNROUTED: Final = "none"
"""The operation label of a request that matched no route."""

_SUM_OF_THE_DEAD: Final = "0"
"""No process has this ID, so a file named by it can hold what dead workers counted."""

_http_requests = Counter(
    "tollhouse_http_requests_total",
    "Requests answered.",
    ["operation", "status"],
    registry=registry,
)
_http_request_seconds = Histogram(
    "tollhouse_http_request_seconds",
    "Time from the head of a request to the end of its answer.",
    ["operation"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30, 120, 600),
    registry=registry,
)
_body_bytes = Histogram(
    "tollhouse_body_bytes",
    "Size of request bodies that were read to their end.",
    buckets=(256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 33_554_432),
    registry=registry,
)
_key_lookups = Counter(
    "tollhouse_key_lookups_total", "Keys asked for, by outcome.", ["outcome"], registry=registry
)
_key_lookup_batches = Counter(
    "tollhouse_key_lookup_batches_total", "Statements that looked keys up.", registry=registry
)
_key_lookup_batch_size = Histogram(
    "tollhouse_key_lookup_batch_size",
    "Keys per statement that looked keys up.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
    registry=registry,
)
_event_loop_stall_seconds = Gauge(
    "tollhouse_event_loop_stall_seconds",
    "Longest time that an event loop could not run what was due.",
    multiprocess_mode="max",
    registry=registry,
)
_database_pool_in_use = Gauge(
    "tollhouse_database_pool_in_use",
    "Database connections that inference and records use.",
    multiprocess_mode="livesum",
    registry=registry,
)
_database_admin_pool_in_use = Gauge(
    "tollhouse_database_admin_pool_in_use",
    "Database connections that Admin routes, reports and maintenance use.",
    multiprocess_mode="livesum",
    registry=registry,
)
_job_runs = Counter(
    "tollhouse_job_runs_total",
    "Runs of background jobs, by outcome.",
    ["job", "outcome"],
    registry=registry,
)
_ledger_batches = Counter(
    "tollhouse_ledger_batches_total",
    "Statements that admitted or resolved, first ones and repeated ones.",
    ["attempt"],
    registry=registry,
)
_ledger_batch_size = Histogram(
    "tollhouse_ledger_batch_size",
    "Admissions and resolutions per statement.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128),
    registry=registry,
)
_admissions = Counter(
    "tollhouse_admissions_total",
    "Requests that asked to be admitted, by verdict.",
    ["verdict"],
    registry=registry,
)
_resolutions = Counter(
    "tollhouse_resolutions_total",
    "Holds that were ended, by kind and by whether it was now.",
    ["kind", "outcome"],
    registry=registry,
)
_resolutions_set_aside = Counter(
    "tollhouse_resolutions_set_aside_total",
    "Resolutions that the database refuses for good; their holds become unsettled.",
    registry=registry,
)
_absorbed = Counter(
    "tollhouse_absorbed_pico_usd_total",
    "What the house paid: above the hold, held and never known, or for answers left unjudged.",
    ["account"],
    registry=registry,
)
_usage_estimated = Counter(
    "tollhouse_usage_estimated_total",
    "Requests charged by the gateway's own count of tokens, because the backend reported none.",
    ["backend"],
    registry=registry,
)
_operator_pays = Counter(
    "tollhouse_operator_pays_total",
    "Requests for which the operator pays something, by the rule that says so.",
    ["rule"],
    registry=registry,
)
_unsettled_holds = Gauge(
    "tollhouse_unsettled_holds",
    "Holds whose end nobody knows yet.",
    multiprocess_mode="livemostrecent",
    registry=registry,
)
_spending_alerts = Counter(
    "tollhouse_spending_alerts_total",
    "Caps and credits of which the alert's share was spent.",
    ["scope"],
    registry=registry,
)
_backend_calls = Counter(
    "tollhouse_backend_calls_total",
    "Calls to backends, by how they ended.",
    ["backend", "outcome"],
    registry=registry,
)
_backend_retries = Counter(
    "tollhouse_backend_retries_total",
    "Attempts after the first one of a call.",
    ["backend"],
    registry=registry,
)
_backend_in_flight = Gauge(
    "tollhouse_backend_in_flight",
    "Calls to backends that are under way.",
    ["backend"],
    multiprocess_mode="livesum",
    registry=registry,
)
_backend_first_byte_seconds = Histogram(
    "tollhouse_backend_first_byte_seconds",
    "Time from a call to the first record of its stream, or to its whole answer's head.",
    ["backend"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120),
    registry=registry,
)
_backend_replicas_avoided = Gauge(
    "tollhouse_backend_replicas_avoided",
    "Replicas that get no calls, as the worker sees it that avoids the most.",
    ["backend", "reason"],
    multiprocess_mode="livemax",
    registry=registry,
)
_limit_refusals = Counter(
    "tollhouse_limit_refusals_total",
    "Requests that a traffic limit refused, by what it counts and whom it bounds.",
    ["kind", "scope"],
    registry=registry,
)
_limits_fallback = Gauge(
    "tollhouse_limits_fallback",
    "Workers that count traffic alone because Redis does not answer.",
    multiprocess_mode="livesum",
    registry=registry,
)
_limits_redis_seconds = Histogram(
    "tollhouse_limits_redis_seconds",
    "Time that Redis took for a batch of counts.",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1),
    registry=registry,
)
_activity_written = Counter(
    "tollhouse_activity_written_total", "Requests that were recorded.", registry=registry
)
_activity_dropped = Counter(
    "tollhouse_activity_dropped_total",
    "Requests that are in no record, by reason.",
    ["reason"],
    registry=registry,
)
_policy_decisions = Counter(
    "tollhouse_policy_decisions_total",
    "What policies decided, or why they did not: a judge failed, or content is not evaluable.",
    ["direction", "mode", "outcome"],
    registry=registry,
)
_policy_decisions_dropped = Counter(
    "tollhouse_policy_decisions_dropped_total",
    "What policies should have decided or have decided, and is in no record, by reason.",
    ["reason"],
    registry=registry,
)
_judging_seconds = Histogram(
    "tollhouse_judging_seconds",
    "Time that all questions about one content took together.",
    ["direction", "mode"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
    registry=registry,
)


class LookupOutcome(StrEnum):
    """How a key was found out: from memory, from the store, not at all, or the store failed."""

    BELIEVED = "believed"
    FOUND = "found"
    UNKNOWN = "unknown"
    FAILED = "failed"


class JobOutcome(StrEnum):
    """How a run of a background job ended."""

    DONE = "done"
    FAILED = "failed"


class ActivityLoss(StrEnum):
    """Why there is no record: too many waited, the database refused it, or the worker ended."""

    NO_ROOM = "no_room"
    REFUSED = "refused"
    STOPPED = "stopped"


class DecisionLoss(StrEnum):
    """Why a decision is in no record.

    There is no judge, too much waited, the organization's judge tokens were used up, asking failed,
    the database refused, or the worker ended.
    """

    NO_JUDGE = "no_judge"
    NO_ROOM = "no_room"
    NO_TOKENS = "no_tokens"
    FAILED = "failed"
    REFUSED = "refused"
    STOPPED = "stopped"


_requests_by_label: dict[tuple[str, int], Counter] = {}
_request_seconds_by_operation: dict[str, Histogram] = {}
_lookups_by_outcome: Final = {outcome: _key_lookups.labels(outcome) for outcome in LookupOutcome}
# Finding a child by its labels costs as much as counting; verdicts, kinds and outcomes are few.
_admissions_of: Final = cache(_admissions.labels)
_resolutions_of: Final = cache(_resolutions.labels)
_decisions_of: Final = cache(_policy_decisions.labels)


def request_answered(operation: str | None, *, status: int, seconds: float) -> None:
    """Count one request; `operation` is an ID of the route table, or None when no route matched."""
    name = operation or UNROUTED
    requests = _requests_by_label.get((name, status))
    if requests is None:
        requests = _requests_by_label[name, status] = _http_requests.labels(name, status)
    durations = _request_seconds_by_operation.get(name)
    if durations is None:
        durations = _request_seconds_by_operation[name] = _http_request_seconds.labels(name)
    requests.inc()
    durations.observe(seconds)


def body_read(size_bytes: int) -> None:
    """Count one request body that arrived whole."""
    _body_bytes.observe(size_bytes)


def key_looked_up(outcome: LookupOutcome) -> None:
    """Count one key that was asked for."""
    _lookups_by_outcome[outcome].inc()


def key_lookup_batch_sent(size: int) -> None:
    """Count one statement that looked up `size` keys at once."""
    _key_lookup_batches.inc()
    _key_lookup_batch_size.observe(size)


def longest_stall(seconds: float) -> None:
    """Set the longest stall since the process began; the greatest of all workers is shown."""
    _event_loop_stall_seconds.set(seconds)


def database_connections_in_use(count: int) -> None:
    """Set how many connections of the inference pool this process uses now."""
    _database_pool_in_use.set(count)


def admin_database_connections_in_use(count: int) -> None:
    """Set how many connections of the Admin pool this process uses now."""
    _database_admin_pool_in_use.set(count)


def ledger_batch_sent(size: int, *, is_retry: bool) -> None:
    """Count one statement with `size` admissions and resolutions."""
    _ledger_batches.labels("repeated" if is_retry else "first").inc()
    _ledger_batch_size.observe(size)


def admission_decided(verdict: int) -> None:
    """Count one verdict, by its number: 0 admitted, 1 no credit, from 10 on a cap."""
    _admissions_of(verdict).inc()


def hold_resolved(kind: str, outcome: str) -> None:
    """Count the end of a hold."""
    _resolutions_of(kind, outcome).inc()


def resolution_set_aside() -> None:
    """Count a resolution that can never be written."""
    _resolutions_set_aside.inc()


def excess_absorbed(amount: int) -> None:
    """Add what a request cost above its hold."""
    _absorbed.labels("excess").inc(amount)


def unknown_absorbed(amount: int) -> None:
    """Add what was held and never known."""
    _absorbed.labels("unknown").inc(amount)


def unjudged_absorbed(amount: int) -> None:
    """Count what an answer cost that nobody could judge, and for which nobody is charged."""
    _absorbed.labels("unjudged").inc(amount)


def usage_estimated(backend: str) -> None:
    """Count a request whose tokens the gateway counted, because its backend did not."""
    _usage_estimated.labels(backend).inc()


def operator_paid(rule: str) -> None:
    """Count one resolution under a rule of `ledger.types.OperatorPays`."""
    _operator_pays.labels(rule).inc()


def unsettled(count: int) -> None:
    """Set how many holds wait for evidence or a decision."""
    _unsettled_holds.set(count)


def spending_alerted(scope: str) -> None:
    """Count one cap or credit of which the alert's share was spent."""
    _spending_alerts.labels(scope).inc()


def traffic_refused(kind: str, scope: str) -> None:
    """Count one request that a limit refused."""
    _limit_refusals.labels(kind, scope).inc()


def limits_fallback(*, is_on: bool) -> None:
    """Set whether this process counts traffic alone, though there should be a Redis."""
    _limits_fallback.set(int(is_on))


def redis_answered(seconds: float) -> None:
    """Count one batch that Redis has answered."""
    _limits_redis_seconds.observe(seconds)


def activity_written(count: int) -> None:
    """Add records that were written, and were not there before."""
    _activity_written.inc(count)


def activity_dropped(count: int, loss: ActivityLoss) -> None:
    """Add records that nobody will find."""
    _activity_dropped.labels(loss).inc(count)


def policy_decided(direction: str, mode: str, outcome: str) -> None:
    """Count what one policy decided."""
    _decisions_of(direction, mode, outcome).inc()


def decisions_dropped(count: int, loss: DecisionLoss) -> None:
    """Count decisions that nobody will read of."""
    _policy_decisions_dropped.labels(loss).inc(count)


def judged(direction: str, mode: str, *, seconds: float) -> None:
    """Time the questions about one content."""
    _judging_seconds.labels(direction, mode).observe(seconds)


def job_ran(job: str, outcome: JobOutcome) -> None:
    """Count one run; `job` is a name from the code, never from data."""
    _job_runs.labels(job, outcome).inc()


class BackendMetrics:
    """What is counted of one backend. Its label is the configured name, never from a request."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._calls: dict[str, Counter] = {}
        self._retries = _backend_retries.labels(backend)
        self._in_flight = _backend_in_flight.labels(backend)
        self._first_byte_seconds = _backend_first_byte_seconds.labels(backend)
        self._unhealthy = _backend_replicas_avoided.labels(backend, "unhealthy")
        self._open = _backend_replicas_avoided.labels(backend, "breaker_open")

    def call_ended(self, outcome: str) -> None:
        """Count one call, whatever number of attempts it took."""
        calls = self._calls.get(outcome)
        if calls is None:
            calls = self._calls[outcome] = _backend_calls.labels(self._backend, outcome)
        calls.inc()

    def retried(self) -> None:
        """Count one attempt after the first."""
        self._retries.inc()

    def in_flight(self, count: int) -> None:
        """Set how many calls are under way in this process."""
        self._in_flight.set(count)

    def answer_began(self, seconds: float) -> None:
        """Time the wait for an answer."""
        self._first_byte_seconds.observe(seconds)

    def replicas_avoided(self, *, unhealthy: int, breakers_open: int) -> None:
        """Set how many replicas get no calls, and why."""
        self._unhealthy.set(unhealthy)
        self._open.set(breakers_open)


def exposition(directory: Path | None) -> bytes:
    """Everything counted so far: by all workers that write to `directory`, or by this process."""
    if directory is None:
        return generate_latest(registry)
    everything = CollectorRegistry()
    MultiProcessCollector(everything, path=str(directory))
    return generate_latest(everything)


def fold_dead_worker(directory: Path, process_id: int) -> None:
    """Add a dead worker's counts to those of all dead workers and remove its files.

    Counters must not fall when a worker is replaced, and files must not pile up either.
    """
    for source in directory.glob(f"*_{process_id}.db"):
        kind = source.name.removesuffix(f"_{process_id}.db")
        if not kind.startswith("gauge_live"):
            total = directory / f"{kind}_{_SUM_OF_THE_DEAD}.db"
            _fold(source, total, keeps_greatest=kind == "gauge_max")
        source.unlink()


def _fold(source: Path, total: Path, *, keeps_greatest: bool) -> None:
    counted = cast("_ValueFile", MmapedDict(str(source), read_mode=True))
    totals = cast("_ValueFile", MmapedDict(str(total)))
    for key, value, _ in counted.read_all_values():
        before, _ = totals.read_value(key)
        totals.write_value(key, max(before, value) if keeps_greatest else before + value, 0.0)
    counted.close()
    totals.close()


class _ValueFile(Protocol):
    """The library's file of values, which comes without types."""

    def read_all_values(self) -> Iterator[tuple[str, float, float]]: ...
    def read_value(self, key: str) -> tuple[float, float]: ...
    def write_value(self, key: str, value: float, timestamp: float) -> None: ...
    def close(self) -> None: ...
