"""Micro-batching of Redis scripts over one connection.

Calls that arrive while a batch is in flight go into the next batch: a round trip for each call
would cost a worker more than the rest of a request. When an answer is late or is an error, the
result of the batch is unknown, and all calls that wait fail.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Protocol, cast

from redis.asyncio.connection import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError

from tollhouse.base.clock import Clock
from tollhouse.base.joined import BatchRunner, fail
from tollhouse.base.tasks import Tasks
from tollhouse.limits.errors import CounterUnavailable
from tollhouse.observability import metrics

BATCH_CALLS_MAX: Final = 128
PREFIXES_MAX: Final = 10_000
_BROKEN: Final = (RedisError, OSError, TimeoutError)


class RedisConnection(Protocol):
    """The part of the library's connection that is used here; its own types are incomplete."""

    @property
    def is_connected(self) -> bool:
        """Whether the connection is open."""
        ...

    async def connect(self) -> None:
        """Open the connection."""
        ...

    async def disconnect(self, nowait: bool = False) -> None:  # noqa: FBT001, FBT002 - theirs
        """Close the connection; does nothing if it is closed."""
        ...

    async def can_read(self) -> bool:
        """Whether the server sent something without a command, or closed the connection."""
        ...

    async def send_packed_command(self, command: list[bytes]) -> None:
        """Send encoded commands."""
        ...

    async def read_response(self) -> bytes:
        """Return the answer to the next command, or raise it if it is an error."""
        ...


def connect(url: str) -> RedisConnection:
    """Return a connection that is not open yet."""
    # Without retries: a call that is repeated would be counted twice.
    pool = ConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType] - theirs
        url, protocol=2, socket_timeout=None, retry=Retry(NoBackoff(), 0)
    )
    return cast("RedisConnection", pool.make_connection())


Connect = Callable[[str], RedisConnection]


@dataclass(frozen=True, slots=True)
class RedisScript:
    """A Lua script, and the digest by which the server runs it once it is loaded."""

    text: str
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()
        object.__setattr__(self, "digest", digest)


_PendingCall = tuple[bytes, "asyncio.Future[bytes]"]
"""An encoded command and its answer."""


class RedisBatcher:
    """Runs scripts in batches, and calls `lost` with the reason if one fails. One per worker."""

    def __init__(
        self,
        url: str,
        scripts: Sequence[RedisScript],
        clock: Clock,
        tasks: Tasks,
        *,
        answer_seconds: float,
        lost: Callable[[BaseException], None],
        connect: Connect = connect,
    ) -> None:
        self._connection = connect(url)
        self._scripts = scripts
        self._clock = clock
        self._answer_seconds = answer_seconds
        self._lost = lost
        self._waiting: deque[_PendingCall] = deque()
        self._runner = BatchRunner[_PendingCall](
            tasks,
            "limits-redis",
            next_batch=self._next_batch,
            run=self._run,
            stopped=self._fail,
        )

    def call(
        self, script: RedisScript, keys: tuple[str, ...], arguments: Sequence[str | int]
    ) -> "asyncio.Future[bytes]":
        """Run a script after all earlier calls; the future has its answer or CounterUnavailable.

        The script runs even if the future is cancelled or ignored.
        """
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.append((_encoded(script, keys, arguments), answer))
        self._runner.wake()
        return answer

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.disconnect()

    def _next_batch(self) -> list[_PendingCall]:
        count = min(len(self._waiting), BATCH_CALLS_MAX)
        return [self._waiting.popleft() for _ in range(count)]

    async def _run(self, batch: Sequence[_PendingCall]) -> None:
        started_seconds = self._clock.monotonic_seconds()
        try:
            async with asyncio.timeout(self._answer_seconds):
                await self._ensure_connected()
                answers = await self._exchange([command for command, _ in batch])
        except _BROKEN as failure:
            await self._connection.disconnect(nowait=True)
            self._lost(failure)
            self._fail(batch)
            return
        metrics.redis_answered(self._clock.monotonic_seconds() - started_seconds)
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():
                future.set_result(answer)

    async def _ensure_connected(self) -> None:
        """Connect again if the server closed the idle connection, which is not a failure."""
        if self._connection.is_connected and not await self._connection.can_read():
            return
        await self._connection.disconnect(nowait=True)
        await self._connection.connect()
        await self._load()

    async def _load(self) -> None:
        """Load all scripts together: a batch with some unknown scripts would run out of order."""
        await self._send(
            [
                f"*3\r\n{_words(('SCRIPT', 'LOAD', script.text))}".encode()
                for script in self._scripts
            ]
        )

    async def _exchange(self, commands: list[bytes]) -> list[bytes]:
        """Return the answers; commands whose script the server has forgotten are sent again."""
        answers, unknown = await self._send(commands)
        if unknown:
            await self._load()
            again, still_unknown = await self._send([commands[position] for position in unknown])
            if still_unknown:
                raise NoScriptError
            for position, answer in zip(unknown, again, strict=True):
                answers[position] = answer
        return answers

    async def _send(self, commands: list[bytes]) -> tuple[list[bytes], list[int]]:
        """Return the answers, and the positions of commands with a script that is not loaded."""
        await self._connection.send_packed_command(commands)
        answers: list[bytes] = []
        unknown: list[int] = []
        for position in range(len(commands)):
            try:
                answers.append(await self._connection.read_response())
            except NoScriptError:
                answers.append(b"")
                unknown.append(position)
        return answers, unknown

    def _fail(self, batch: Sequence[_PendingCall]) -> None:
        """Fail a batch, and the calls that wait behind it."""
        for _, answer in (*batch, *self._waiting):
            fail(answer, CounterUnavailable())
        self._waiting.clear()


def _encoded(script: RedisScript, keys: tuple[str, ...], arguments: Sequence[str | int]) -> bytes:
    """Return an EVALSHA command; redis-py takes several times as long for the same bytes."""
    command = _prefix(script.digest, keys, len(arguments))
    for argument in arguments:
        text = str(argument)
        command += f"${len(text)}\r\n{text}\r\n"
    assert command.isascii(), "the protocol counts bytes, not characters"
    return command.encode()


@lru_cache(maxsize=PREFIXES_MAX)
def _prefix(digest: str, keys: tuple[str, ...], arguments: int) -> str:
    """Return the part of a command that stays the same while the limits of a key do."""
    words = ("EVALSHA", digest, str(len(keys)), *keys)
    return f"*{len(words) + arguments}\r\n{_words(words)}"


def _words(words: Iterable[str]) -> str:
    return "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
