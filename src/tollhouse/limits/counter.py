"""Where traffic is counted: in Redis for all workers, and in this process while Redis is lost."""

import asyncio
from collections.abc import Mapping
from typing import Final

from tollhouse.base.clock import Clock
from tollhouse.limits import rules
from tollhouse.limits.commands import LimitCommands
from tollhouse.limits.errors import CounterUnavailable
from tollhouse.limits.redis_servers import RedisServers
from tollhouse.limits.shared_counter import RedisState, read_decision
from tollhouse.limits.types import BucketCost, Corrections, LimitDecision, LimitRequest

BUCKETS_MAX: Final = 100_000
"""The least recently used buckets are dropped first, and count as full from then on."""


class LimitCounter:
    """Counts in Redis, or locally while Redis is lost. One per worker.

    A failing Redis delays a request, but never fails it.
    """

    def __init__(self, local: "LocalLimitCounter", servers: RedisServers) -> None:
        self._local = local
        self._servers = servers

    async def count(
        self, commands: LimitCommands, template: str, request: LimitRequest
    ) -> tuple[LimitDecision, bool]:
        """Grant the whole request or nothing; also return whether Redis decided.

        `template` is the one of `commands` for this request. Granted slots are held until
        `release`.
        """
        decision, shared = None, self._servers.by_slot[commands.hash_slot]
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
        elif (shared := self._servers.by_slot[commands.hash_slot]) is not None:
            shared.correct(commands, corrections)

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
        if (shared := self._servers.by_slot[commands.hash_slot]) is not None:
            shared.release(commands, request, corrections)


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
