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
from tollhouse.limits import commands, rules
from tollhouse.limits.commands import (
    LimitCommands,
    count_command,
    encoded,
    leave_command,
    load_command,
)
from tollhouse.limits.errors import CounterUnavailable
from tollhouse.limits.redis_batcher import RedisBatcher
from tollhouse.limits.redis_connection import Connect
from tollhouse.limits.types import BucketCost, Corrections, LimitDecision, LimitRequest
from tollhouse.observability import metrics

logger = logging.getLogger("tollhouse.limits")

BUCKETS_MAX: Final = 100_000
"""The least recently used buckets are dropped first, and count as full from then on."""
RENEWED_AT_ONCE: Final = 1000
"""About as many slots as Redis renews in a millisecond."""
_REASON_LENGTH_MAX: Final = 200
_PROBE_KEY: Final = "tollhouse:probe"


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

    async def count(
        self, commands: LimitCommands, template: str, request: LimitRequest
    ) -> tuple[LimitDecision, bool]:
        """Grant the whole request or nothing; also return whether Redis decided.

        `template` is the one of `commands` for this request. Granted slots are held until
        `release`.
        """
        decision, shared = None, self._shared
        if shared is not None and shared.state is RedisState.UP:
            try:
                decision = read_decision(request, await shared.count(template, request))
            except CounterUnavailable:
                pass
            except asyncio.CancelledError:
                # The worker stops; the slots may have been granted.
                shared.release(commands, request)
                raise
        is_from_redis = decision is not None
        if decision is None:
            decision = self._local.count(request)
        if request.slots and decision.refused_by is None:
            self._local.hold(request)
        return decision, is_from_redis

    def correct(
        self, commands: LimitCommands, corrections: Corrections, *, are_shared: bool
    ) -> None:
        """Correct the buckets where they were counted. Never waits."""
        if not are_shared:
            self._local.correct(corrections)
        elif self._shared is not None:
            self._shared.correct(commands, corrections)

    def release(
        self,
        commands: LimitCommands,
        request: LimitRequest,
        corrections: Corrections,
        *,
        are_shared: bool,
    ) -> None:
        """Give the slots back, and correct the buckets where they were counted. Never waits."""
        if request.slots:
            self._local.release(request)
        if not are_shared:
            self._local.correct(corrections)
            corrections = ()
        if self._shared is not None:
            self._shared.release(commands, request, corrections)

    async def renew_leases(self) -> None:
        """Renew the leases of running requests; use a lost Redis again once it answers."""
        if self._shared is not None:
            await self._shared.renew_leases(self._local.held)

    async def drain(self) -> None:
        """Wait until Redis has answered everything, or is lost."""
        if self._shared is not None:
            await self._shared.drain()

    async def close(self) -> None:
        """Close the connection to Redis, after it has answered everything."""
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
            expected_full_at_us=[
                self._full_at_us.get(cost.key, now_us) for cost in request.expected
            ],
            now_us=now_us,
        )
        if decision.refused_by is None:
            for cost, missing_us in zip(request.costs, decision.missing_us, strict=True):
                self._set_missing(cost, missing_us, now_us)
            if decision.expected_missing_us is not None:
                for cost, missing_us in zip(
                    request.expected, decision.expected_missing_us, strict=True
                ):
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
        tasks: Tasks,
        *,
        answer_seconds: float,
        lease_ms: int,
        connect: Connect,
    ) -> None:
        self._redis = RedisBatcher(
            url,
            tasks,
            preparation=[load_command(script) for script in commands.ALL_SCRIPTS],
            answer_seconds=answer_seconds,
            lost=self._fall_back,
            connect=connect,
        )
        self._lease_ms = lease_ms
        self.state = RedisState.UP

    def count(self, template: str, request: LimitRequest) -> "asyncio.Future[bytes]":
        """Grant the whole request or nothing; `read_decision` reads the answer.

        The future raises CounterUnavailable if Redis does not answer.
        """
        return self._redis.call(count_command(template, request))

    def correct(self, commands: LimitCommands, corrections: Corrections) -> None:
        """Take more from buckets, or give back to them; dropped while Redis is lost."""
        if self.state is RedisState.UP:
            self._redis.send(leave_command(commands.correct, corrections, ""))

    def release(
        self, commands: LimitCommands, request: LimitRequest, corrections: Corrections = ()
    ) -> None:
        """Give the slots back, and take more from buckets or give back to them.

        While Redis is lost, slots come back when their lease expires and corrections are dropped.
        """
        if corrections and self.state is RedisState.UP:
            template = commands.leave_and_correct
            self._redis.send(leave_command(template, corrections, request.member))
        elif request.slots and self.state is not RedisState.DOWN:
            self._redis.send(leave_command(commands.leave, (), request.member))

    async def drain(self) -> None:
        """Wait until Redis has answered everything, or is lost."""
        await self._redis.drain()

    async def renew_leases(self, held: Mapping[str, set[str]]) -> None:
        """Renew the leases of running requests; use a lost Redis again once it answers."""
        if self.state is RedisState.DOWN:
            self.state = RedisState.RETURNING
        try:
            if self.state is RedisState.RETURNING:
                await self._redis.call(encoded(commands.PROBE, (_PROBE_KEY,), ()))
            await self._renew(held)
        except CounterUnavailable:
            return
        if self.state is RedisState.RETURNING:
            self.state = RedisState.UP
            metrics.limits_fallback(is_on=False)
            logger.warning("limits_fallback_ended")

    async def close(self) -> None:
        """Close the connection, after Redis has answered everything."""
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
                    command = encoded(commands.RENEW, (key,), arguments)
                    renewals.append(self._redis.call(command))
            await asyncio.gather(*renewals)

    def _fall_back(self, failure: BaseException) -> None:
        was_up, self.state = self.state is RedisState.UP, RedisState.DOWN
        if was_up:
            metrics.limits_fallback(is_on=True)
            reason = f"{type(failure).__name__}: {failure}"[:_REASON_LENGTH_MAX]
            logger.warning("limits_fallback_began", extra={"reason": reason})


def read_decision(request: LimitRequest, answer: bytes) -> LimitDecision:
    """Read the answer of `scripts.COUNT`, a status line."""
    numbers = [*map(int, answer[1:].split())]
    refusing, granted = numbers[0], 2 + len(request.costs)
    return LimitDecision(
        missing_us=tuple(numbers[2:granted]),
        expected_missing_us=tuple(numbers[granted:]) or None,
        refused_by=(*request.costs, *request.slots)[refusing - 1] if refusing else None,
        wait_us=numbers[1],
    )
