"""The replicas of one backend: which one a call goes to, circuit breakers and the retry budget.

Each worker decides from its own calls and its own health checks. Nothing here does I/O.
"""

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from tollhouse.backends.errors import BackendBusy, BackendError, RetrySafety
from tollhouse.backends.types import BackendConfig
from tollhouse.base.clock import Clock
from tollhouse.observability.metrics import BackendMetrics

logger = logging.getLogger("tollhouse.backends")

FAILURES_MAX = 5
"""Failures in a row that open a breaker."""
PAUSE_SECONDS = 5.0
"""An open breaker lets one trial call pass in each pause, until one succeeds."""
HEALTH_FAILURES_MAX = 2
"""Failed health checks in a row that make a replica unhealthy. One may be a pause of the engine."""
ATTEMPTS_MAX = 3
LOAD_FACTOR = 1.25
"""Affinity may load a replica up to this multiple of the mean load."""
RETRY_COST = 10
"""Calls that pay for one retry: at most a tenth of all calls are retried (OQ-244), ..."""
RETRIES_SAVED_MAX = 10
"""... plus this many that quiet times have saved."""
_SAVED_MAX = RETRY_COST * RETRIES_SAVED_MAX
_NUMBER_BYTES = 8
_NUMBER_MASK = 2 ** (8 * _NUMBER_BYTES) - 1


@dataclass(frozen=True, slots=True)
class Breaker:
    """A circuit breaker. It is closed while fewer than `FAILURES_MAX` calls in a row failed."""

    failures: int = 0
    closed_from_seconds: float = 0.0

    @property
    def is_open(self) -> bool:
        """Whether only trial calls pass."""
        return self.failures >= FAILURES_MAX

    def allows(self, now_seconds: float) -> bool:
        """Return whether a call may pass now."""
        return self.failures < FAILURES_MAX or now_seconds >= self.closed_from_seconds

    def after_call_began(self, now_seconds: float) -> "Breaker":
        """Return the breaker after a call passed. A trial call blocks others for one pause."""
        return Breaker(self.failures, now_seconds + PAUSE_SECONDS) if self.is_open else self

    def after_success(self) -> "Breaker":
        """Return the breaker after a call succeeded."""
        return CLOSED

    def after_failure(self, now_seconds: float) -> "Breaker":
        """Return the breaker after one more failure."""
        return Breaker(self.failures + 1, now_seconds + PAUSE_SECONDS)


CLOSED = Breaker()


@dataclass(slots=True)
class RetryBudget:
    """Keeps retries below a tenth of all calls, so that an outage does not multiply the load."""

    saved: int = _SAVED_MAX

    def earn(self) -> None:
        """Count one call."""
        if self.saved < _SAVED_MAX:
            self.saved += 1

    def spend(self) -> bool:
        """Pay for one retry. Returns whether the budget covers it."""
        if self.saved < RETRY_COST:
            return False
        self.saved -= RETRY_COST
        return True


class ReplicaLoad(Protocol):
    """What `choose` reads of a replica."""

    in_flight: int

    @property
    def number(self) -> int:
        """Return what `replica_number` returns for the replica's URL."""
        ...


L = TypeVar("L", bound=ReplicaLoad)


def replica_number(url: str) -> int:
    """Return an odd number that depends on the URL alone, so that all workers agree on it."""
    return _number(url.encode()) | 1


def choose(
    candidates: Sequence[L], affinity: bytes | None, *, draw: Callable[[Sequence[L]], L]
) -> L:
    """Return one of `candidates`, which must not be empty. `draw` decides between equals.

    With affinity: rendezvous hashing among the replicas that are not loaded above `LOAD_FACTOR`. A
    key moves only if its replica disappears, is full, or if one with a higher hash appears.
    """
    if len(candidates) == 1:
        return candidates[0]
    if affinity is None:
        least = min(candidate.in_flight for candidate in candidates)
        return draw([candidate for candidate in candidates if candidate.in_flight == least])
    key = _number(affinity)
    load_max = LOAD_FACTOR * sum(c.in_flight for c in candidates) / len(candidates)
    return max(
        (candidate for candidate in candidates if candidate.in_flight <= load_max),
        key=lambda candidate: key * candidate.number & _NUMBER_MASK,
    )


def may_retry(failure: BackendError, *, attempts: int, bills_without_answer: bool) -> bool:
    """Return whether another attempt may help and cannot be billed twice."""
    if attempts >= ATTEMPTS_MAX or failure.retry_safety is RetrySafety.NEVER:
        return False
    return not (bills_without_answer and failure.was_sent)


def _number(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=_NUMBER_BYTES).digest())


class Replica:
    """One base URL of a backend, its name, and what this worker knows about it."""

    __slots__ = ("breaker", "health_failures", "host_url", "in_flight", "name", "number", "url")

    def __init__(self, url: str, name: str) -> None:
        parts = urlsplit(url)
        self.url = url.rstrip("/")
        self.name = name
        self.host_url = f"{parts.scheme}://{parts.netloc}"
        self.number = replica_number(self.url)
        self.in_flight = 0
        self.breaker = CLOSED
        self.health_failures = 0

    @property
    def is_healthy(self) -> bool:
        """Whether health checks let calls pass. True before the first check."""
        return self.health_failures < HEALTH_FAILURES_MAX


class Replicas:
    """All replicas of one backend."""

    def __init__(self, config: BackendConfig, clock: Clock, metrics: BackendMetrics) -> None:
        self._config = config
        self._clock = clock
        self._metrics = metrics
        self._in_flight = 0
        self._budget = RetryBudget()
        self.all = [
            Replica(url, name)
            for url, name in zip(config.replicas, config.replica_names, strict=True)
        ]
        metrics.read_in_flight_from(lambda: self._in_flight)

    @property
    def is_ready(self) -> bool:
        """Whether a call would find a replica now."""
        for replica in self.all:
            if replica.breaker is CLOSED and replica.health_failures < HEALTH_FAILURES_MAX:
                return True
        return bool(self._candidates(()))

    def acquire(self, affinity: bytes | None) -> Replica | None:
        """Count a call and return its replica, or None if no replica is available.

        The caller must release the replica. Raises `BackendBusy` at the bound on connections.
        """
        self._budget.earn()
        return self._acquire(affinity, self._candidates(()))

    def acquire_next(
        self, affinity: bytes | None, failure: BackendError, tried: Sequence[Replica]
    ) -> Replica | None:
        """Return the replica for another attempt after `failure`, or None if there shall be none.

        The caller must release the replica. Raises `BackendBusy` at the bound on connections.
        """
        bills_without_answer = self._config.bills_without_answer
        if not may_retry(failure, attempts=len(tried), bills_without_answer=bills_without_answer):
            return None
        candidates = self._candidates(tried)
        if not candidates and failure.retry_safety is RetrySafety.ANYWHERE:
            candidates = self._candidates(())
        replica = self._acquire(affinity, candidates)
        if replica is None:
            return None
        if not self.take_retry():
            self.release(replica)
            return None
        return replica

    def take_retry(self) -> bool:
        """Pay for one retry, here or at another backend, and count it if the budget covers it."""
        is_covered = self._budget.spend()
        if is_covered:
            self._metrics.retried()
        return is_covered

    def _acquire(self, affinity: bytes | None, candidates: Sequence[Replica]) -> Replica | None:
        if self._in_flight >= self._config.connections_max:
            raise BackendBusy(replica=None)
        if not candidates:
            return None
        replica = choose(candidates, affinity, draw=random.choice)
        if replica.breaker is not CLOSED:
            replica.breaker = replica.breaker.after_call_began(self._clock.monotonic_seconds())
        replica.in_flight += 1
        self._in_flight += 1
        return replica

    def _candidates(self, tried: Sequence[Replica]) -> list[Replica]:
        """Return the replicas that are healthy, not blocked by a breaker, and not tried yet."""
        now_seconds = self._clock.monotonic_seconds()
        return [
            replica
            for replica in self.all
            if replica.health_failures < HEALTH_FAILURES_MAX
            and (replica.breaker is CLOSED or replica.breaker.allows(now_seconds))
            and replica not in tried
        ]

    def release(self, replica: Replica) -> None:
        """Count an attempt as ended."""
        replica.in_flight -= 1
        self._in_flight -= 1

    def record_success(self, replica: Replica) -> None:
        """Close the breaker: the replica has answered."""
        if replica.breaker is CLOSED:
            return
        was_open = replica.breaker.is_open
        replica.breaker = CLOSED
        if was_open:
            logger.info("replica_breaker_closed", extra=self._names(replica))
            self._count_avoided()

    def record_failure(self, replica: Replica) -> None:
        """Count a failure that the replica caused, and open its breaker if they are too many."""
        was_open = replica.breaker.is_open
        replica.breaker = replica.breaker.after_failure(self._clock.monotonic_seconds())
        if replica.breaker.is_open and not was_open:
            logger.warning("replica_breaker_opened", extra=self._names(replica))
            self._count_avoided()

    def record_health(self, replica: Replica, *, is_well: bool) -> None:
        """Count the result of a health check."""
        was_healthy = replica.is_healthy
        replica.health_failures = 0 if is_well else replica.health_failures + 1
        if replica.is_healthy != was_healthy:
            event = "replica_healthy" if is_well else "replica_unhealthy"
            level = logging.INFO if is_well else logging.WARNING
            logger.log(level, event, extra=self._names(replica))
            self._count_avoided()

    def _count_avoided(self) -> None:
        self._metrics.replicas_avoided(
            unhealthy=sum(not replica.is_healthy for replica in self.all),
            breakers_open=sum(replica.breaker.is_open for replica in self.all),
        )

    def _names(self, replica: Replica) -> dict[str, str]:
        return {"backend": self._config.name, "replica": replica.url}
