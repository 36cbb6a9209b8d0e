"""Where traffic is counted: in Redis for all workers, and in this process while Redis is lost.

In Redis, slots of concurrent requests are leases. A worker renews the leases of its running
requests, so the slots of a killed worker expire, and a Redis that lost its data gets them again.
"""

import asyncio
import logging
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from tollhouse.base.clock import Clock
from tollhouse.base.tasks import Tasks
from tollhouse.limits import rules, scripts
from tollhouse.limits.errors import CounterUnavailable
from tollhouse.limits.redis_batcher import Connect, RedisBatcher, RedisScript, connect
from tollhouse.limits.types import BucketCost, Corrections, LimitDecision, LimitRequest
from tollhouse.observability import metrics

logger = logging.getLogger("tollhouse.limits")

BUCKETS_MAX: Final = 100_000
"""The least recently used buckets are dropped first, and count as full from then on."""
LEASE_SECONDS: Final = 30.0
RENEWED_AT_ONCE: Final = 1000
"""About as many slots as Redis renews in a millisecond."""
_REASON_LENGTH_MAX: Final = 200
_PROBE_KEY: Final = "tollhouse:probe"

_COUNT: Final = RedisScript(scripts.SERVER_CLOCK + scripts.COUNT)
_RENEW: Final = RedisScript(scripts.SERVER_CLOCK + scripts.RENEW)
_LEAVE: Final = RedisScript(scripts.SERVER_CLOCK + scripts.LEAVE)
_PROBE: Final = RedisScript(scripts.PROBE)
_SCRIPTS: Final = (_COUNT, _RENEW, _LEAVE, _PROBE)

_Call = tuple[tuple[str, ...], list[str | int]]
"""The keys and the arguments of a script."""


class RedisState(StrEnum):
    """Whether Redis counts. A returning one gets its leases again before it is used."""

    UP = "up"
    DOWN = "down"
    RETURNING = "returning"


class LimitCounter:
    """Counts in Redis, or locally while Redis is lost. One per worker.

    A failing Redis delays a request, but never fails it.
    """

    def __init__(self, local: "LocalLimitCounter", shared: "SharedLimitCounter | None") -> None:
        self._local = local
        self._shared = shared

    async def count(self, request: LimitRequest) -> tuple[LimitDecision, bool]:
        """Grant the whole request or nothing; also return whether Redis decided.

        Granted slots are held until `release`.
        """
        decision, shared = None, self._shared
        is_limited = request.costs or request.slots
        if shared is not None and shared.state is RedisState.UP and is_limited:
            try:
                decision = read_decision(request, await shared.count(request))
            except CounterUnavailable:
                pass
            except asyncio.CancelledError:
                # The caller disconnected; the slots may have been granted.
                shared.release(request)
                raise
        is_from_redis = decision is not None
        if decision is None:
            decision = self._local.count(request)
        if request.slots and decision.refused_by is None:
            self._local.hold(request)
        return decision, is_from_redis

    def release(self, request: LimitRequest, corrections: Corrections, *, are_shared: bool) -> None:
        """Give the slots back, and correct the buckets where they were counted. Never waits."""
        self._local.release(request)
        if not are_shared:
            self._local.correct(corrections)
        if self._shared is not None:
            self._shared.release(request, corrections if are_shared else ())

    async def renew_leases(self) -> None:
        """Renew the leases of running requests; use a lost Redis again once it answers."""
        if self._shared is not None:
            await self._shared.renew_leases(self._local.held)

    async def close(self) -> None:
        """Close the connection to Redis."""
        if self._shared is not None:
            await self._shared.close()


class LocalLimitCounter:
    """Counts in this process alone. Knows the slots of all its requests, also those of Redis."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._full_at_us: dict[str, int] = {}
        self._held: dict[str, set[str]] = {}

    @property
    def held(self) -> Mapping[str, set[str]]:
        """The running requests of this process, by the key of their slots."""
        return self._held

    def count(self, request: LimitRequest) -> LimitDecision:
        """Grant the whole request or nothing."""
        now_us = self._now_us()
        decision = rules.decide(
            request,
            full_at_us=[self._full_at_us.get(cost.key, now_us) for cost in request.costs],
            taken_slots=[len(self._held.get(slot.key, ())) for slot in request.slots],
            now_us=now_us,
        )
        if decision.refused_by is None:
            for cost, missing_us in zip(request.costs, decision.missing_us, strict=True):
                self._set_missing(cost, missing_us, now_us)
        return decision

    def correct(self, corrections: Corrections) -> None:
        """Take more from buckets, or give back."""
        now_us = self._now_us()
        for cost, more_us in corrections:
            full_at_us = self._full_at_us.get(cost.key, now_us)
            missing_us = rules.missing_us(cost, full_at_us, now_us)
            self._set_missing(cost, rules.corrected_us(cost, missing_us, more_us), now_us)

    def hold(self, request: LimitRequest) -> None:
        """Remember granted slots until they are released."""
        for slot in request.slots:
            self._held.setdefault(slot.key, set()).add(request.member)

    def release(self, request: LimitRequest) -> None:
        """Give the slots back."""
        for slot in request.slots:
            members = self._held[slot.key]
            members.discard(request.member)
            if not members:
                del self._held[slot.key]

    def _set_missing(self, cost: BucketCost, missing_us: int, now_us: int) -> None:
        self._full_at_us.pop(cost.key, None)
        if missing_us:
            self._full_at_us[cost.key] = now_us + missing_us
        if len(self._full_at_us) > BUCKETS_MAX:
            del self._full_at_us[next(iter(self._full_at_us))]

    def _now_us(self) -> int:
        return int(self._clock.monotonic_seconds() * rules.SECOND_US)


class SharedLimitCounter:
    """Counts in Redis. One failure takes it out of use, until Redis accepts writes again."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        tasks: Tasks,
        *,
        answer_seconds: float,
        lease_seconds: float = LEASE_SECONDS,
        connect: Connect = connect,
    ) -> None:
        self._redis = RedisBatcher(
            url,
            _SCRIPTS,
            clock,
            tasks,
            answer_seconds=answer_seconds,
            lost=self._fall_back,
            connect=connect,
        )
        self._lease_ms = int(lease_seconds * 1000)
        self.state = RedisState.UP

    def count(self, request: LimitRequest) -> "asyncio.Future[bytes]":
        """Grant the whole request or nothing; `read_decision` reads the answer.

        The future raises CounterUnavailable if Redis does not answer.
        """
        return self._redis.call(_COUNT, *count_call(request, self._lease_ms))

    def release(self, request: LimitRequest, corrections: Corrections = ()) -> None:
        """Give the slots back, and take more from buckets or give back to them.

        While Redis is lost, slots come back when their lease expires and corrections are dropped.
        """
        if self.state is RedisState.DOWN:
            return
        corrected = corrections if self.state is RedisState.UP else ()
        if corrected or request.slots:
            self._redis.call(_LEAVE, *leave_call(request, corrected))

    async def renew_leases(self, held: Mapping[str, set[str]]) -> None:
        """Renew the leases of running requests; use a lost Redis again once it answers."""
        if self.state is RedisState.DOWN:
            self.state = RedisState.RETURNING
        try:
            if self.state is RedisState.RETURNING:
                await self._redis.call(_PROBE, (_PROBE_KEY,), ())
            await self._renew(held)
        except CounterUnavailable:
            return
        if self.state is RedisState.RETURNING:
            self.state = RedisState.UP
            metrics.limits_fallback(is_on=False)
            logger.warning("limits_fallback_ended")

    async def close(self) -> None:
        """Close the connection."""
        await self._redis.close()

    async def _renew(self, held: Mapping[str, set[str]]) -> None:
        """Renew in parts; each part is sent before a request in it can end."""
        keys = list(held)
        while keys:
            renewals: list[asyncio.Future[bytes]] = []
            count = 0
            while keys and count < RENEWED_AT_ONCE:
                key = keys.pop()
                members = held.get(key, ())
                count += len(members)
                if members:
                    arguments = [self._lease_ms, " ".join(members)]
                    renewals.append(self._redis.call(_RENEW, (key,), arguments))
            await asyncio.gather(*renewals)

    def _fall_back(self, failure: BaseException) -> None:
        was_up, self.state = self.state is RedisState.UP, RedisState.DOWN
        if was_up:
            metrics.limits_fallback(is_on=True)
            reason = f"{type(failure).__name__}: {failure}"[:_REASON_LENGTH_MAX]
            logger.warning("limits_fallback_began", extra={"reason": reason})


def count_call(request: LimitRequest, lease_ms: int) -> _Call:
    """Return keys and arguments in the order that `scripts.COUNT` reads them."""
    keys: list[str] = []
    arguments: list[str | int] = [len(request.costs)]
    for cost in request.costs:
        keys.append(cost.key)
        arguments += (cost.cost_us, cost.full_us)
    for slot in request.slots:
        keys.append(slot.key)
        arguments.append(slot.limit)
    arguments += (lease_ms, request.member)
    return tuple(keys), arguments


def leave_call(request: LimitRequest, corrections: Corrections) -> _Call:
    """Return keys and arguments in the order that `scripts.LEAVE` reads them."""
    keys: list[str] = []
    arguments: list[str | int] = [len(corrections)]
    for cost, more_us in corrections:
        keys.append(cost.key)
        arguments += (more_us, cost.full_us)
    keys += [slot.key for slot in request.slots]
    arguments.append(request.member)
    return tuple(keys), arguments


def read_decision(request: LimitRequest, answer: bytes) -> LimitDecision:
    """Read the answer of `scripts.COUNT`."""
    refusing, wait_us, *missing_us = map(int, answer.split())
    return LimitDecision(
        missing_us=tuple(missing_us),
        refused_by=(*request.costs, *request.slots)[refusing - 1] if refusing else None,
        wait_us=wait_us,
    )
