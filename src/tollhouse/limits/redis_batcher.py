"""Micro-batching of commands to Redis over one connection.

Commands that arrive while a batch is under way go into the next batch, in the order of their
calls: a system call for each command would cost a worker more than all else here. When an answer
is late or is an error, the results of the batch are unknown, and all calls that wait fail.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, RedisError, ResponseError

from tollhouse.base.joined import fail
from tollhouse.base.tasks import Tasks
from tollhouse.limits.commands import PING
from tollhouse.limits.errors import CounterUnavailable
from tollhouse.limits.redis_connection import AnswerReader, Connect, RedisTransport
from tollhouse.limits.types import LimitRequest
from tollhouse.observability import metrics

DEFER_SECONDS: Final = 0.001
"""How long a command that nothing waits for may wait for others to be sent with."""
_BROKEN: Final = (RedisError, OSError, TimeoutError)
_ERROR: Final = ord("-")
_LENGTH_OF_STRING: Final = ord("$")
_UNKNOWN_SCRIPT: Final = b"-NOSCRIPT"
_MOVED: Final = (b"-MOVED", b"-ASK", b"-TRYAGAIN")

_Call = tuple[str, "asyncio.Future[bytes] | None", LimitRequest | None]
"""An encoded command, its answer, or None if nothing waits for it, and the request it is for."""


class RedisBatcher:
    """Sends commands, and calls `lost` if one fails. One per server.

    `lost` gets the reason and the requests whose commands were not answered.

    `preparation` are commands that each connection begins with, and repeats if Redis does not know
    a script: all of them, because a batch with some unknown scripts would run out of order.
    `moved` gets the request of a command that a node of a cluster refuses because it does not have
    the keys, or has them only in part while they move. Only that command fails then.
    """

    def __init__(
        self,
        url: str,
        tasks: Tasks,
        *,
        preparation: Sequence[str],
        answer_seconds: float,
        lost: Callable[[BaseException, Sequence[LimitRequest]], None],
        moved: Callable[[Sequence[LimitRequest]], None],
        connect: Connect,
    ) -> None:
        self._url = url
        self._tasks = tasks
        self._preparation: list[_Call] = [(command, None, None) for command in preparation]
        self._answer_seconds = answer_seconds
        self._lost = lost
        self._moved = moved
        self._connect = connect
        self._waiting: list[_Call] = []
        self._under_way: deque[_Call] = deque()
        self._since_seconds = 0.0
        self._unknown: list[_Call] = []
        self._is_repeating = False
        self._is_connecting = False
        self._is_flush_due = False
        self._reader: AnswerReader | None = None
        self._transport: RedisTransport | None = None
        self._deferred: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def call(self, command: str, request: LimitRequest | None = None) -> "asyncio.Future[bytes]":
        """Run a command after all earlier ones; return its answer or CounterUnavailable.

        The command runs even if the future is cancelled or ignored.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()
        self._waiting.append((command, answer, request))
        if not self._is_flush_due:
            self._is_flush_due = True
            if not self._under_way:
                loop.call_soon(self._flush)
        return answer

    def send(self, command: str, request: LimitRequest | None = None) -> None:
        """Run a command after all earlier ones. Nothing waits for its answer.

        It is sent along with the next call, or DEFER_SECONDS from now.
        """
        self._waiting.append((command, None, request))
        if self._deferred is None and not self._is_flush_due:
            loop = asyncio.get_running_loop()
            self._deferred = loop.call_later(DEFER_SECONDS, self._flush)

    async def drain(self) -> None:
        """Wait until Redis has answered everything, or is lost."""
        if self._waiting or self._under_way:
            try:
                await self.call(PING)
            except CounterUnavailable:
                return

    async def close(self) -> None:
        """Close the connection when Redis has answered everything, or is lost."""
        try:
            await self.drain()
        finally:
            self._disconnect()

    def _flush(self) -> None:
        if self._deferred is not None:
            self._deferred.cancel()
            self._deferred = None
        self._is_flush_due = bool(self._under_way) or self._is_connecting
        if self._is_flush_due or not self._waiting:
            return
        if self._transport is None:
            self._is_connecting = True
            self._tasks.start("limits-redis", self._open())
        else:
            self._write(self._transport, asyncio.get_running_loop().time())

    def _write(self, transport: RedisTransport, since_seconds: float) -> None:
        self._is_flush_due = False
        self._since_seconds = since_seconds
        self._under_way.extend(self._waiting)
        self._waiting.clear()
        transport.write("".join([call[0] for call in self._under_way]).encode())
        if self._deadline is None:
            self._await_until(since_seconds + self._answer_seconds)

    async def _open(self) -> None:
        since_seconds = asyncio.get_running_loop().time()
        reader, transport = AnswerReader(self._receive, self._closed), None
        failure: BaseException = RedisConnectionError("The connection was not opened.")
        try:
            async with asyncio.timeout(self._answer_seconds):
                transport = await self._connect(self._url, reader)
        except _BROKEN as broken:
            failure = broken
        finally:
            self._is_connecting = False
            if transport is None:
                self._lose(failure)
        if transport is not None:
            self._reader, self._transport = reader, transport
            self._waiting[:0] = self._preparation
            self._write(transport, since_seconds)

    def _receive(self, lines: list[bytes]) -> None:
        """Take answers. A string comes behind a line with its length, and contains no line end."""
        under_way = self._under_way
        for line in lines:
            if not under_way:
                return
            if line[0] == _LENGTH_OF_STRING:
                continue
            answer = under_way[0][1]
            if line[0] == _ERROR:
                if not self._is_skipped(line):
                    return
            elif answer is not None and not answer.done():
                answer.set_result(line)
            under_way.popleft()
        if not under_way:
            metrics.redis_answered(asyncio.get_running_loop().time() - self._since_seconds)
            if self._unknown or self._is_repeating:
                self._repeat_unknown()
            if self._is_flush_due:
                self._flush()

    def _is_skipped(self, line: bytes) -> bool:
        """Keep a command whose script Redis has forgotten, and fail one whose keys have moved.

        Any other error is a loss of Redis.
        """
        if line.startswith(_MOVED):
            moved = self._under_way[0]
            self._moved(_requests((moved,)))
            if moved[1] is not None:
                fail(moved[1], CounterUnavailable())
            return True
        if not line.startswith(_UNKNOWN_SCRIPT):
            self._lose(ResponseError(line[1:].decode(errors="replace")))
        elif self._is_repeating:
            self._lose(NoScriptError())
        else:
            self._unknown.append(self._under_way[0])
            return True
        return False

    def _repeat_unknown(self) -> None:
        """Load the scripts again, and send what Redis did not know before all later commands."""
        self._is_repeating = self._is_flush_due = bool(self._unknown)
        if self._unknown:
            self._waiting[:0] = self._preparation + self._unknown
            self._unknown = []

    def _await_until(self, deadline_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_at(deadline_seconds, self._check_deadline)

    def _check_deadline(self) -> None:
        self._deadline = None
        if not self._under_way:
            return
        deadline_seconds = self._since_seconds + self._answer_seconds
        if asyncio.get_running_loop().time() >= deadline_seconds:
            self._lose(TimeoutError(f"no answer within {self._answer_seconds} s"))
        else:
            self._await_until(deadline_seconds)

    def _closed(self, reader: AnswerReader, failure: BaseException | None) -> None:
        """Lose Redis if it owes answers. To close an idle connection is not a failure."""
        if reader is not self._reader:
            return
        if self._under_way:
            self._lose(failure or RedisConnectionError("Redis has closed the connection."))
        else:
            self._disconnect()

    def _lose(self, failure: BaseException) -> None:
        self._disconnect()
        calls = [*self._under_way, *self._unknown, *self._waiting]
        self._under_way.clear()
        self._unknown, self._waiting = [], []
        self._is_repeating = self._is_flush_due = False
        self._lost(failure, _requests(calls))
        for _, answer, _ in calls:
            if answer is not None:
                fail(answer, CounterUnavailable())

    def _disconnect(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._transport is not None:
            self._transport.abort()
        self._reader = self._transport = None


def _requests(calls: Iterable[_Call]) -> list[LimitRequest]:
    return [request for _, _, request in calls if request is not None]
