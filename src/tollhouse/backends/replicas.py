"""The replicas of one backend: which one a call goes to, and which ones are left out for a while.

Each worker decides from its own calls and its own health checks. Nothing here does I/O.
"""

import logging
import random
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from tollhouse.backends.call_history import ALL_WELL, CallHistory, ReplicaUse
from tollhouse.backends.errors import BackendBusy, BackendError, NoReplica
from tollhouse.backends.types import BackendConfig, UpstreamRequest
from tollhouse.base.clock import Clock
from tollhouse.observability.metrics import BackendMetrics

logger = logging.getLogger("tollhouse.backends")

HEALTH_FAILURES_MAX = 2
"""Failed health checks in a row that make a replica unhealthy. One may be a pause of the engine."""
LOAD_FACTOR = 1.25
"""Affinity may load a replica up to this multiple of the mean load."""
BY_HAND = "by hand"
_NUMBER_BYTES = 8
_NUMBER_MASK = 2 ** (8 * _NUMBER_BYTES) - 1


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


def may_move(failure: BackendError, *, bills_without_answer: bool) -> bool:
    """Return whether another replica or model may answer, if the caller has received nothing.

    A request that is refused as invalid is the caller's mistake, and a call that may be billed is
    not made twice.
    """
    return failure.may_move and not (bills_without_answer and failure.may_have_been_billed)


def _number(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=_NUMBER_BYTES).digest())


class Replica:
    """One base URL of a backend, its name, and what this worker knows about it.

    `histories` has the models for which calls have failed lately.
    """

    __slots__ = (
        "health_failures",
        "histories",
        "host_url",
        "in_flight",
        "is_ejected",
        "name",
        "number",
        "url",
    )

    def __init__(self, url: str, name: str) -> None:
        parts = urlsplit(url)
        self.url = url.rstrip("/")
        self.name = name
        self.host_url = f"{parts.scheme}://{parts.netloc}"
        self.number = replica_number(self.url)
        self.in_flight = 0
        self.histories: dict[str, CallHistory] = {}
        self.health_failures = 0
        self.is_ejected = False

    @property
    def is_healthy(self) -> bool:
        """Whether health checks let calls pass. True before the first check."""
        return self.health_failures < HEALTH_FAILURES_MAX

    @property
    def is_open(self) -> bool:
        """Whether neither health checks nor the operator keep calls off."""
        return self.health_failures < HEALTH_FAILURES_MAX and not self.is_ejected

    @property
    def state(self) -> ReplicaUse:
        """Return the worst that is known of the replica, for any model."""
        if self.is_ejected:
            return ReplicaUse.EJECTED
        if not self.is_healthy:
            return ReplicaUse.UNHEALTHY
        states = {history.state for history in self.histories.values()}
        return max(states, key=list(ReplicaUse).index, default=ReplicaUse.IN_USE)


class Replicas:
    """All replicas of one backend."""

    def __init__(self, config: BackendConfig, clock: Clock, metrics: BackendMetrics) -> None:
        self._config = config
        self._clock = clock
        self._metrics = metrics
        self._in_flight = 0
        self.all = [
            Replica(url, name)
            for url, name in zip(config.replicas, config.replica_names, strict=True)
        ]
        metrics.read_in_flight_from(lambda: self._in_flight)
        self._count_states()

    def is_ready(self, model: str) -> bool:
        """Return whether a call for a model would find a replica now that is not ejected."""
        for replica in self.all:
            if replica.is_open and model not in replica.histories:
                return True
        open_ones = [each for each in self.all if each.is_open]
        return bool(self._allowed(open_ones, model, is_bounded=True))

    def is_in_use(self, model: str) -> bool:
        """Return whether any replica receives more calls for a model than trials."""
        return any(
            each.is_open and each.histories.get(model, ALL_WELL).state is ReplicaUse.IN_USE
            for each in self.all
        )

    @property
    def is_healthy(self) -> bool:
        """Whether health checks and the operator let calls pass to any replica."""
        return any(replica.is_open for replica in self.all)

    def acquire(
        self, request: UpstreamRequest, *, is_bounded: bool, tried: Sequence[Replica] = ()
    ) -> Replica:
        """Count an attempt and return its replica, which the caller must release.

        Raises `BackendBusy` at the bound on connections, and `NoReplica`. Where no other model
        could answer, replicas are called that are ejected.
        """
        if self._in_flight >= self._config.connections_max:
            raise BackendBusy(replica=None)
        found = [each for each in self.all if each.is_open and each not in tried]
        if len(found) == 1 and request.model not in found[0].histories:
            candidates = found
        else:
            candidates = self._allowed(found, request.model, is_bounded=is_bounded)
            if not candidates and request.is_last_candidate:
                candidates = found
        if not candidates:
            raise NoReplica
        replica = choose(candidates, request.affinity, draw=random.choice)
        if (history := replica.histories.get(request.model)) is not None:
            began = history.after_call_began(self._clock.monotonic_seconds())
            replica.histories[request.model] = began
        replica.in_flight += 1
        self._in_flight += 1
        return replica

    def acquire_next(
        self,
        request: UpstreamRequest,
        failure: BackendError,
        *,
        is_bounded: bool,
        tried: Sequence[Replica],
    ) -> Replica | None:
        """Return a replica that was not tried yet, or None if `failure` is the last word."""
        if not may_move(failure, bills_without_answer=self._config.bills_without_answer):
            return None
        if request.may_move is not None and not request.may_move():
            return None
        try:
            replica = self.acquire(request, is_bounded=is_bounded, tried=tried)
        except BackendError:
            return None
        self._metrics.retried()
        return replica

    def _allowed(
        self, replicas: Sequence[Replica], model: str, *, is_bounded: bool
    ) -> list[Replica]:
        """Return those of open replicas that are not ejected for a model, or due for a trial."""
        now_seconds = self._clock.monotonic_seconds()
        return [
            each
            for each in replicas
            if (history := each.histories.get(model)) is None
            or history.allows(now_seconds, is_bounded=is_bounded)
        ]

    def release(self, replica: Replica) -> None:
        """Count an attempt as ended."""
        replica.in_flight -= 1
        self._in_flight -= 1

    def record_success(self, replica: Replica, model: str) -> None:
        """Count a call that the replica has begun to answer."""
        history = replica.histories.get(model)
        if history is None:
            return
        after = history.after_success()
        if after is ALL_WELL:
            del replica.histories[model]
        else:
            replica.histories[model] = after
        self._note(replica, model, history, after)

    def record_failure(self, replica: Replica, model: str, failure: BackendError) -> None:
        """Count a failure that the replica is to blame for, and eject it if they are too many."""
        history = replica.histories.get(model, ALL_WELL)
        after = history.after_failure(failure, self._clock.monotonic_seconds())
        replica.histories[model] = after
        self._note(replica, model, history, after)

    def record_health(self, replica: Replica, *, is_well: bool) -> None:
        """Count the result of a health check."""
        was_healthy = replica.is_healthy
        replica.health_failures = 0 if is_well else replica.health_failures + 1
        if replica.is_healthy != was_healthy:
            event = "replica_healthy" if is_well else "replica_unhealthy"
            level = logging.INFO if is_well else logging.WARNING
            logger.log(level, event, extra=self._names(replica))
            self._count_states()

    def obey(self, name: str, *, is_ejected: bool) -> None:
        """Leave a replica out by the operator's order, or forget all failures that it had."""
        for replica in self.all:
            # An order of long ago is read again at each start, and has nothing to change then.
            if replica.name == name and (replica.is_ejected != is_ejected or replica.histories):
                replica.is_ejected = is_ejected
                if not is_ejected:
                    replica.histories.clear()
                event = "replica_ejected" if is_ejected else "replica_returned"
                logger.info(event, extra={**self._names(replica), "reason": BY_HAND})
        self._count_states()

    def _note(self, replica: Replica, model: str, before: CallHistory, after: CallHistory) -> None:
        """Log a change of state, and count it."""
        if after.state is before.state:
            return
        is_well = after.state is ReplicaUse.IN_USE
        logger.log(
            logging.INFO if is_well else logging.WARNING,
            "replica_returned" if is_well else "replica_ejected",
            extra={**self._names(replica), "model": model, "reason": after.why or None},
        )
        self._count_states()

    def _count_states(self) -> None:
        states = [replica.state for replica in self.all]
        for state in ReplicaUse:
            if state is not ReplicaUse.IN_USE:
                self._metrics.replicas_avoided(state, states.count(state))

    def _names(self, replica: Replica) -> dict[str, str]:
        return {"backend": self._config.name, "replica": replica.url}
