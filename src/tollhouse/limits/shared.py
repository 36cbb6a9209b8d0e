"""Counting in Redis, over all workers.

Slots are leases: a worker renews those of its running requests, and enters them again where
Redis has forgotten them. So a killed worker's come back, and a flushed Redis learns anew.
"""

import asyncio
import logging
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from tollhouse.base.clock import Clock
from tollhouse.base.tasks import Tasks
from tollhouse.limits import scripts
from tollhouse.limits.errors import CountingLost
from tollhouse.limits.line import RedisLine, Script
from tollhouse.limits.types import Ask, Corrections, Decision
from tollhouse.observability import metrics

logger = logging.getLogger("tollhouse.limits")

LEASE_SECONDS: Final = 30.0
RENEWED_AT_ONCE: Final = 1000
"""About so many slots in a row, for which Redis needs a millisecond."""
_REASON_LENGTH_MAX: Final = 200
_PROBE_KEY: Final = "tollhouse:probe"

_COUNT: Final = Script(scripts.SERVER_CLOCK + scripts.COUNT)
_RENEW: Final = Script(scripts.SERVER_CLOCK + scripts.RENEW)
_LEAVE: Final = Script(scripts.SERVER_CLOCK + scripts.LEAVE)
_PROBE: Final = Script(scripts.PROBE)
_SCRIPTS: Final = (_COUNT, _RENEW, _LEAVE, _PROBE)


class _State(StrEnum):
    UP = "up"
    DOWN = "down"
    RETURNING = "returning"


class SharedCounting:
    """One per worker. Trusted until Redis fails once, and again when it takes writes."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        tasks: Tasks,
        *,
        answer_seconds: float,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._line = RedisLine(
            url, _SCRIPTS, clock, tasks, answer_seconds=answer_seconds, lost=self._fall
        )
        self._lease_ms = int(lease_seconds * 1000)
        self._state = _State.UP

    @property
    def is_up(self) -> bool:
        """Whether Redis is asked at all."""
        return self._state is _State.UP

    async def count(self, ask: Ask) -> Decision:
        """Grant all that is asked for, or nothing; raises CountingLost."""
        answer = await self._line.ask(_COUNT, _keys(ask), count_arguments(ask, self._lease_ms))
        return read_decision(ask, answer)

    def leave(self, ask: Ask, corrections: Corrections = ()) -> None:
        """Give the slots back, and take more from buckets or give back to them.

        While Redis is lost slots come back with their lease, and corrections are lost too.
        """
        if self._state is _State.DOWN:
            return
        corrected = corrections if self._state is _State.UP else ()
        if keys := leave_keys(ask, corrected):
            self._line.tell(_LEAVE, keys, leave_arguments(ask, corrected))

    async def tend(self, held: Mapping[str, set[str]]) -> None:
        """Renew the leases of what runs; where Redis was lost, see whether it is back."""
        if self._state is _State.DOWN:
            self._state = _State.RETURNING
        try:
            if self._state is _State.RETURNING:
                await self._line.ask(_PROBE, (_PROBE_KEY,), ())
            await self._renew(held)
        except CountingLost:
            return
        if self._state is _State.RETURNING:
            self._state = _State.UP
            metrics.limits_fallback(is_on=False)
            logger.warning("limits_fallback_ended")

    async def close(self) -> None:
        """Hang up."""
        await self._line.close()

    async def _renew(self, held: Mapping[str, set[str]]) -> None:
        """Some at a time; each is asked for before whoever holds it can leave."""
        keys = list(held)
        while keys:
            asked: list[asyncio.Future[bytes]] = []
            count = 0
            while keys and count < RENEWED_AT_ONCE:
                key = keys.pop()
                members = held.get(key, ())
                count += len(members)
                if members:
                    arguments = [self._lease_ms, " ".join(members)]
                    asked.append(self._line.ask(_RENEW, (key,), arguments))
            await asyncio.gather(*asked)

    def _fall(self, failure: BaseException) -> None:
        was_up, self._state = self._state is _State.UP, _State.DOWN
        if was_up:
            metrics.limits_fallback(is_on=True)
            reason = f"{type(failure).__name__}: {failure}"[:_REASON_LENGTH_MAX]
            logger.warning("limits_fallback_began", extra={"reason": reason})


def count_arguments(ask: Ask, lease_ms: int) -> list[str | int]:
    """In the order that `scripts.COUNT` reads them."""
    return [
        len(ask.draws),
        *(number for draw in ask.draws for number in (draw.cost_us, draw.full_us)),
        *(slot.limit for slot in ask.slots),
        lease_ms,
        ask.member,
    ]


def leave_keys(ask: Ask, corrections: Corrections) -> tuple[str, ...]:
    """In the order that `scripts.LEAVE` reads them."""
    return (*(draw.key for draw, _ in corrections), *(slot.key for slot in ask.slots))


def leave_arguments(ask: Ask, corrections: Corrections) -> list[str | int]:
    """In the order that `scripts.LEAVE` reads them."""
    return [
        len(corrections),
        *(number for draw, more_us in corrections for number in (more_us, draw.full_us)),
        ask.member,
    ]


def read_decision(ask: Ask, answer: bytes) -> Decision:
    """What `scripts.COUNT` has answered."""
    refusing, wait_us, *missing_us = map(int, answer.split())
    counted = (*ask.draws, *ask.slots)
    return Decision(
        missing_us=tuple(missing_us),
        refused_by=counted[refusing - 1] if refusing else None,
        wait_us=wait_us,
    )


def _keys(ask: Ask) -> tuple[str, ...]:
    return tuple([counted.key for counted in (*ask.draws, *ask.slots)])
