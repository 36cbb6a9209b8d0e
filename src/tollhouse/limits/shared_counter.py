"""Counts in one Redis server, as long as it answers.

Slots of concurrent requests are leases. A worker renews the leases of its running requests, so the
slots of a killed worker expire, and a Redis that lost its data gets them again.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from tollhouse.base.tasks import Tasks
from tollhouse.limits import commands
from tollhouse.limits.commands import (
    LimitCommands,
    count_command,
    encoded,
    leave_command,
    load_command,
)
from tollhouse.limits.errors import CounterUnavailable
from tollhouse.limits.redis_batcher import RedisBatcher
from tollhouse.limits.redis_connection import Connect, greeting
from tollhouse.limits.stale_leases import StaleLeases
from tollhouse.limits.types import Corrections, LimitDecision, LimitRequest

RENEWED_AT_ONCE: Final = 1000
"""About as many slots as Redis renews in a millisecond."""


class RedisState(StrEnum):
    """Whether Redis counts. A returning one gets its leases again before it is used."""

    UP = "up"
    DOWN = "down"
    RETURNING = "returning"


class SharedLimitCounter:
    """Counts in one Redis server. A failure takes it out of use, until it accepts writes again.

    `lost` gets the failure and the requests that were not answered. A request whose keys another
    server has is counted by the worker alone, and `moved` gets it.
    """

    def __init__(
        self,
        url: str,
        tasks: Tasks,
        *,
        answer_seconds: float,
        lease_ms: int,
        connect: Connect,
        lost: Callable[["SharedLimitCounter", BaseException, Sequence[LimitRequest]], None],
        moved: Callable[[Sequence[LimitRequest]], None],
        state: RedisState,
    ) -> None:
        self._redis = RedisBatcher(
            url,
            tasks,
            preparation=[*greeting(url), *map(load_command, commands.ALL_SCRIPTS)],
            answer_seconds=answer_seconds,
            lost=self._fall_back,
            moved=moved,
            connect=connect,
        )
        self._lease_ms = lease_ms
        self._lost = lost
        self._is_closing = False
        self.state = state
        self.probe_key = ""

    def count(self, template: str, request: LimitRequest) -> "asyncio.Future[bytes]":
        """Grant the whole request or nothing; `read_decision` reads the answer.

        The future raises CounterUnavailable if Redis does not answer.
        """
        return self._redis.call(count_command(template, request), request)

    def correct(self, commands: LimitCommands, corrections: Corrections) -> None:
        """Take more from buckets, or give back to them; dropped while Redis is lost."""
        if self.state is RedisState.UP:
            self._redis.send(leave_command(commands.correct, corrections, ""))

    def release(
        self, commands: LimitCommands, request: LimitRequest, corrections: Corrections = ()
    ) -> None:
        """Give the slots back, and take more from buckets or give back to them.

        While Redis is lost, corrections are dropped, and slots are given back when it returns.
        """
        if corrections and self.state is RedisState.UP:
            template = commands.leave_and_correct
            self._redis.send(leave_command(template, corrections, request.member), request)
        elif request.slots and self.state is not RedisState.DOWN:
            self._redis.send(leave_command(commands.leave, (), request.member), request)

    async def drain(self) -> None:
        """Wait until Redis has answered everything, or is lost."""
        await self._redis.drain()

    async def renew_leases(
        self, held: Mapping[str, set[str]], stale: StaleLeases, keys: list[str]
    ) -> None:
        """Renew the leases of `keys` and take stale ones back; use a lost server again.

        `held` has the requests that run, by the key of their slots.
        """
        if self.state is RedisState.DOWN:
            self.state = RedisState.RETURNING
        try:
            if self.state is RedisState.RETURNING:
                await self._redis.call(encoded(commands.PROBE, (self.probe_key,), ()))
            await self._renew(held, stale, keys)
        except CounterUnavailable:
            if self.state is RedisState.RETURNING:
                self.state = RedisState.DOWN
            return
        if self.state is RedisState.RETURNING:
            self.state = RedisState.UP

    async def close(self) -> None:
        """Close the connection, after Redis has answered everything. To be lost matters no more."""
        self._is_closing = True
        await self._redis.close()

    async def _renew(
        self, held: Mapping[str, set[str]], stale: StaleLeases, keys: list[str]
    ) -> None:
        """Renew in parts; each part is sent before a request in it can end."""
        while keys:
            renewals: list[asyncio.Future[bytes]] = []
            taken_back: list[tuple[str, list[str]]] = []
            count = 0
            while keys and count < RENEWED_AT_ONCE:
                key = keys.pop()
                members, ended = held.get(key, ()), stale.members(key, held)
                count += len(members) + len(ended)
                if members or ended:
                    taken_back.append((key, ended))
                    arguments = [self._lease_ms, " ".join(members), " ".join(ended)]
                    command = encoded(commands.RENEW, (key,), arguments)
                    renewals.append(self._redis.call(command))
            await asyncio.gather(*renewals)
            for key, ended in taken_back:
                stale.discard(key, ended)

    def _fall_back(self, failure: BaseException, unanswered: Sequence[LimitRequest]) -> None:
        self.state = RedisState.DOWN
        if not self._is_closing:
            self._lost(self, failure, unanswered)


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
