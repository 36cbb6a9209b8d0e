"""The way to a replica: who is well, who is left alone for a while, who gets the next call.

Every worker finds this out for itself, from its own calls and its own health checks.
"""

import asyncio
import logging
import random
from collections.abc import Sequence
from urllib.parse import urlsplit

from tollhouse.backends import rules
from tollhouse.backends.errors import BackendBusy
from tollhouse.backends.rules import CLOSED
from tollhouse.backends.transport import Transport
from tollhouse.backends.transport_errors import TransportError
from tollhouse.backends.types import BackendConfig
from tollhouse.base.clock import Clock
from tollhouse.base.tasks import Tasks, repeated
from tollhouse.observability.metrics import BackendMetrics

logger = logging.getLogger("tollhouse.backends")

HEALTH_EVERY_SECONDS = 5.0
HEALTH_ANSWER_SECONDS = 5.0
HEALTH_SPREAD = 0.2
"""Periods differ by this share, so that checks of many replicas do not come at once."""
HEALTH_FAILURES_MAX = 2
"""In a row; fewer may be a pause of the engine."""
_SERVER_ERRORS_FROM = 500


class Replica:
    """One of the servers, as this worker sees it now."""

    __slots__ = ("breaker", "health_failures", "host_url", "in_flight", "number", "url")

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.url = url.rstrip("/")
        self.host_url = f"{parts.scheme}://{parts.netloc}"
        self.number = rules.replica_number(self.url)
        self.in_flight = 0
        self.breaker = CLOSED
        self.health_failures = 0

    @property
    def is_healthy(self) -> bool:
        """Until the contrary is known: a server without a health route is judged by calls alone."""
        return self.health_failures < HEALTH_FAILURES_MAX


class Lease:
    """One attempt at a replica. Whoever took it must end it, on every way out."""

    __slots__ = ("_is_over", "_replicas", "replica")

    def __init__(self, replicas: "Replicas", replica: Replica) -> None:
        self._replicas = replicas
        self._is_over = False
        self.replica = replica

    def answered(self) -> None:
        """The replica is alive, whatever it said."""
        self._replicas.succeeded(self.replica)

    def failed(self) -> None:
        """The replica is to blame."""
        self._replicas.failed(self.replica)

    def end(self) -> None:
        """Make room; further calls have no effect."""
        if not self._is_over:
            self._is_over = True
            self._replicas.ended(self.replica)


class Replicas:
    """All replicas of one backend."""

    def __init__(
        self,
        config: BackendConfig,
        transport: Transport,
        clock: Clock,
        metrics: BackendMetrics,
        *,
        health_every_seconds: float = HEALTH_EVERY_SECONDS,
        health_answer_seconds: float = HEALTH_ANSWER_SECONDS,
    ) -> None:
        self._config = config
        self._transport = transport
        self._clock = clock
        self._metrics = metrics
        self._health_every_seconds = health_every_seconds
        self._health_answer_seconds = health_answer_seconds
        self._replicas = [Replica(url) for url in config.replicas]
        self._in_flight = 0
        self._checks: list[asyncio.Task[None]] = []

    @property
    def is_ready(self) -> bool:
        """Whether a call would find a replica now."""
        return bool(self._candidates(()))

    def take(
        self, affinity: bytes | None, *, tried: Sequence[Replica] = (), may_be_same: bool = False
    ) -> Lease | None:
        """A replica that was not tried yet, or where `may_be_same` the same again; or none."""
        if self._in_flight >= self._config.connections_max:
            raise BackendBusy(replica=None)
        candidates = self._candidates(tried)
        if not candidates and may_be_same:
            candidates = self._candidates(())
        if not candidates:
            return None
        replica = rules.choose(candidates, affinity, draw=random.choice)
        if replica.breaker.is_open:
            replica.breaker = replica.breaker.after_call_began(self._clock.monotonic_seconds())
        replica.in_flight += 1
        self._in_flight += 1
        self._metrics.in_flight(self._in_flight)
        return Lease(self, replica)

    def _candidates(self, tried: Sequence[Replica]) -> list[Replica]:
        now_seconds = self._clock.monotonic_seconds()
        return [
            replica
            for replica in self._replicas
            if replica.is_healthy
            and (replica.breaker is CLOSED or replica.breaker.allows(now_seconds))
            and replica not in tried
        ]

    def ended(self, replica: Replica) -> None:
        """An attempt is over."""
        replica.in_flight -= 1
        self._in_flight -= 1
        self._metrics.in_flight(self._in_flight)

    def succeeded(self, replica: Replica) -> None:
        """Close its breaker."""
        if replica.breaker is CLOSED:
            return
        was_open = replica.breaker.is_open
        replica.breaker = CLOSED
        if was_open:
            logger.info("replica_breaker_closed", extra=self._names(replica))
            self._note_avoided()

    def failed(self, replica: Replica) -> None:
        """Open its breaker if that was one too many."""
        was_open = replica.breaker.is_open
        replica.breaker = replica.breaker.after_failure(self._clock.monotonic_seconds())
        if replica.breaker.is_open and not was_open:
            logger.warning("replica_breaker_opened", extra=self._names(replica))
            self._note_avoided()

    def start(self, tasks: Tasks) -> None:
        """Check every replica's health from now on."""
        for replica in self._replicas:
            spread = random.uniform(1 - HEALTH_SPREAD, 1 + HEALTH_SPREAD)  # noqa: S311 - no secret
            name = f"health-{self._config.name}"
            work = repeated(
                name,
                lambda checked=replica: self._check(checked),
                every_seconds=self._health_every_seconds * spread,
            )
            self._checks.append(tasks.start(name, work))

    async def stop(self) -> None:
        """Check no more."""
        for check in self._checks:
            check.cancel()
        await asyncio.gather(*self._checks, return_exceptions=True)
        self._checks.clear()

    async def _check(self, replica: Replica) -> None:
        """Ask a replica how it is. A status such as 404 says that it has no such route, no more."""
        is_well = await self._is_well(replica)
        was_healthy = replica.is_healthy
        replica.health_failures = 0 if is_well else replica.health_failures + 1
        if replica.is_healthy != was_healthy:
            event = "replica_healthy" if is_well else "replica_unhealthy"
            logger.log(
                logging.INFO if is_well else logging.WARNING, event, extra=self._names(replica)
            )
            self._note_avoided()

    async def _is_well(self, replica: Replica) -> bool:
        try:
            async with asyncio.timeout(self._health_answer_seconds):
                response = await self._transport.open(
                    "GET",
                    replica.host_url + self._config.health_path,
                    headers={},
                    body=None,
                    connect_seconds=self._config.connect_seconds,
                )
        except (TimeoutError, TransportError):
            return False
        response.close()
        return response.status < _SERVER_ERRORS_FROM

    def _note_avoided(self) -> None:
        self._metrics.replicas_avoided(
            unhealthy=sum(not replica.is_healthy for replica in self._replicas),
            breakers_open=sum(replica.breaker.is_open for replica in self._replicas),
        )

    def _names(self, replica: Replica) -> dict[str, str]:
        return {"backend": self._config.name, "replica": replica.url}
