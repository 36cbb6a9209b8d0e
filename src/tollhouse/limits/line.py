"""The line to Redis: one connection, on which whoever comes meanwhile rides with the next batch.

Asking one by one would cost a worker more than all its other work on a request. An answer that
does not come in time, or is none, ends everything that waits: the result is then unknown.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Protocol, cast

from redis.asyncio.connection import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError, ResponseError

from tollhouse.base.clock import Clock
from tollhouse.base.tasks import Tasks
from tollhouse.limits.errors import CountingLost
from tollhouse.observability import metrics

BATCH_CALLS_MAX: Final = 128
BEGINNINGS_MAX: Final = 10_000
_BROKEN: Final = (RedisError, OSError, TimeoutError)


@dataclass(frozen=True, slots=True)
class Script:
    """A text that the server may know already, by its digest."""

    text: str
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()
        object.__setattr__(self, "digest", digest)


@dataclass(eq=False, slots=True)
class _Call:
    """Ready for the wire. Without `done`, nobody waits for it."""

    packed: bytes
    done: "asyncio.Future[bytes] | None"

    def answer(self, answer: bytes) -> None:
        if self.done is not None and not self.done.done():
            self.done.set_result(answer)

    def fail(self) -> None:
        if self.done is not None and not self.done.done():
            self.done.set_exception(CountingLost())


class RedisLine:
    """One per worker. `lost` hears of every batch that has failed."""

    def __init__(
        self,
        url: str,
        scripts: Sequence[Script],
        clock: Clock,
        tasks: Tasks,
        *,
        answer_seconds: float,
        lost: Callable[[BaseException], None],
    ) -> None:
        self._connection = _connection(url)
        self._scripts = scripts
        self._clock = clock
        self._tasks = tasks
        self._answer_seconds = answer_seconds
        self._lost = lost
        self._waiting: deque[_Call] = deque()
        self._is_busy = False

    def ask(
        self, script: Script, keys: tuple[str, ...], arguments: Sequence[str | int]
    ) -> "asyncio.Future[bytes]":
        """Run a script behind all that was asked for before; its answer, or CountingLost.

        Whoever no longer waits for the answer does not undo it.
        """
        done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._put(_Call(_call(script, keys, arguments), done))
        return done

    def tell(self, script: Script, keys: tuple[str, ...], arguments: Sequence[str | int]) -> None:
        """Run a script without waiting for it; it may be lost with Redis."""
        self._put(_Call(_call(script, keys, arguments), None))

    def _put(self, call: _Call) -> None:
        self._waiting.append(call)
        if not self._is_busy:
            self._is_busy = True
            self._tasks.start("limits-line", self._run())

    async def close(self) -> None:
        """Hang up."""
        await self._connection.disconnect()

    async def _run(self) -> None:
        """While one batch is under way the next one gathers; ends when nobody waits."""
        batch: list[_Call] = []
        try:
            while self._waiting:
                batch = [
                    self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH_CALLS_MAX))
                ]
                await self._carry_out(batch)
        finally:
            self._is_busy = False
            self._fail(batch)

    async def _carry_out(self, batch: Sequence[_Call]) -> None:
        started_seconds = self._clock.monotonic_seconds()
        try:
            async with asyncio.timeout(self._answer_seconds):
                await self._connect()
                answers = await self._exchange(batch)
        except _BROKEN as failure:
            await self._connection.disconnect(nowait=True)
            self._lost(failure)
            self._fail(batch)
            return
        metrics.redis_answered(self._clock.monotonic_seconds() - started_seconds)
        for call, answer in zip(batch, answers, strict=True):
            call.answer(answer)

    async def _connect(self) -> None:
        """A server that was restarted while nobody asked has hung up; that is no failure."""
        if self._connection.is_connected and not await self._connection.can_read():
            return
        await self._connection.disconnect(nowait=True)
        await self._connection.connect()
        await self._load()

    async def _load(self) -> None:
        """All at once: were some known and others not, a batch would lose its order."""
        await self._send(
            [
                f"*3\r\n{_packed(('SCRIPT', 'LOAD', script.text))}".encode()
                for script in self._scripts
            ]
        )

    async def _exchange(self, batch: Sequence[_Call]) -> list[bytes]:
        """The answers of all. What the server has forgotten has not run, and runs now."""
        answers = await self._send([call.packed for call in batch])
        unknown = [
            position for position, answer in enumerate(answers) if isinstance(answer, NoScriptError)
        ]
        if unknown:
            await self._load()
            again = await self._send([batch[position].packed for position in unknown])
            for position, answer in zip(unknown, again, strict=True):
                answers[position] = answer
        return [_sound(answer) for answer in answers]

    async def _send(self, commands: list[bytes]) -> list[bytes | ResponseError]:
        await self._connection.send_packed_command(commands)
        return [await self._answer() for _ in commands]

    async def _answer(self) -> bytes | ResponseError:
        try:
            return await self._connection.read_response()
        except ResponseError as refusal:
            return refusal

    def _fail(self, batch: Sequence[_Call]) -> None:
        """Whoever waits shall wait no longer, the next batch included."""
        for call in (*batch, *self._waiting):
            call.fail()
        self._waiting.clear()


def _call(script: Script, keys: tuple[str, ...], arguments: Sequence[str | int]) -> bytes:
    """As the protocol wants it; the library takes several times as long for the same bytes."""
    return (_beginning(script.digest, keys, len(arguments)) + _packed(arguments)).encode()


@lru_cache(maxsize=BEGINNINGS_MAX)
def _beginning(digest: str, keys: tuple[str, ...], arguments: int) -> str:
    """The same for every request of a key, as long as its limits stay the same."""
    words = ("EVALSHA", digest, len(keys), *keys)
    return f"*{len(words) + arguments}\r\n{_packed(words)}"


def _packed(words: Sequence[str | int]) -> str:
    texts = map(str, words)
    packed = "".join([f"${len(text)}\r\n{text}\r\n" for text in texts])
    assert packed.isascii(), "lengths on the wire are those of bytes"
    return packed


def _sound(answer: bytes | ResponseError) -> bytes:
    if isinstance(answer, ResponseError):
        raise answer
    return answer


class _Connection(Protocol):
    """The library's connection, which comes half without types."""

    @property
    def is_connected(self) -> bool: ...
    async def connect(self) -> None: ...
    async def disconnect(self, nowait: bool = False) -> None: ...  # noqa: FBT001, FBT002 - theirs
    async def can_read(self) -> bool: ...
    async def send_packed_command(self, command: list[bytes]) -> None: ...
    async def read_response(self) -> bytes: ...


def _connection(url: str) -> _Connection:
    # What is counted twice is wrong, so nothing is repeated behind our back.
    pool = ConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType] - theirs
        url, protocol=2, socket_timeout=None, retry=Retry(NoBackoff(), 0)
    )
    return cast("_Connection", pool.make_connection())
