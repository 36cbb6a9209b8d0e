"""Connections to upstreams: one request at a time on each, and the pool of idle ones."""

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from math import inf
from typing import Final, cast

from tollhouse.backends.errors import ConnectionBroken, TookTooLong, TransportError
from tollhouse.backends.http1 import AnswerParser, Origin

SENT_AT_ONCE_BYTES: Final = 1_048_576
"""A larger body is written in pieces, so that other requests run in between."""
BUFFERED_BYTES_MAX: Final = 32_768
"""Reading from the upstream pauses while more of a body than this is unread."""
IDLE_SECONDS: Final = 4.0
"""Shorter than the 5 s after which uvicorn and llama.cpp close: a connection must not be reused
while its other end is closing it."""


class UpstreamState(Enum):
    """What a connection is doing. `FAILED` is final.

    A connection stays in `SENDING` if the upstream answers before it has read the whole request.
    """

    IDLE = auto()
    SENDING = auto()
    RECEIVING = auto()
    FAILED = auto()


class UpstreamConnection(asyncio.Protocol):
    """One connection, used by one task at a time. Calls `on_lost` once, when it is closed."""

    __slots__ = (
        "_can_write",
        "_failure",
        "_is_reading",
        "_loop",
        "_on_lost",
        "_state",
        "_transport",
        "_waiter",
        "answer",
    )

    def __init__(self, on_lost: Callable[["UpstreamConnection"], None]) -> None:
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self.answer = AnswerParser()
        self._state = UpstreamState.IDLE
        self._failure: type[TransportError] = ConnectionBroken
        self._waiter: asyncio.Future[None] | None = None
        self._is_reading = True
        self._can_write = True

    @property
    def is_reusable(self) -> bool:
        """Whether another request may be sent on this connection.

        An answer that ended while reading was paused leaves the connection paused: it could not
        receive the next answer.
        """
        if self._state is UpstreamState.RECEIVING:
            is_free = self.answer.is_whole and self.answer.keeps_alive
        else:
            is_free = self._state is UpstreamState.IDLE
        return is_free and self._is_reading and not self._transport.is_closing()

    @property
    def peer_address(self) -> str:
        """The IP address that the connection leads to."""
        return str(self._transport.get_extra_info("peername")[0])

    async def send(self, head: bytes, body: bytes | None) -> tuple[int, dict[bytes, bytes]]:
        """Send a request. Return the status and headers of its answer.

        If the upstream answers before it has read the whole body, the rest is not sent.
        """
        answer = self.answer
        answer.begin()
        if body is None or len(body) <= SENT_AT_ONCE_BYTES:
            self._enter(UpstreamState.RECEIVING)
            self._transport.write(head + body if body else head)
        else:
            await self._send_in_pieces(head, body)
        while not answer.status:
            await self._change()
        return answer.status, answer.headers

    async def next_bytes(self) -> bytes:
        """Return what has arrived of the body, waiting for at least one byte; empty at its end."""
        answer = self.answer
        while not answer.buffered_bytes:
            if answer.is_whole:
                return b""
            await self._change()
        taken = answer.take()
        if not self._is_reading:
            self._is_reading = True
            self._transport.resume_reading()
        return taken

    def set_idle(self) -> None:
        """Expect nothing until the next `send`. A byte that arrives meanwhile aborts."""
        self._enter(UpstreamState.IDLE)

    def time_out(self) -> None:
        """Raise `TookTooLong` in the task that waits for this connection."""
        self._fail(TookTooLong)

    def abort(self) -> None:
        """Close at once, dropping what was not yet sent or read."""
        self._enter(UpstreamState.FAILED)
        self._transport.abort()

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        # uvloop's class is not a subclass of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Parse a part of the answer; pause reading if too much of it is unread."""
        if self._state is UpstreamState.IDLE:
            self.abort()
            return
        answer = self.answer
        try:
            answer.feed(data)
        except TransportError as failure:
            self._fail(type(failure))
            return
        if answer.buffered_bytes > BUFFERED_BYTES_MAX and self._is_reading:
            self._is_reading = False
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        """End a body that has no stated length; the transport then closes itself."""
        try:
            self.answer.end()
        except TransportError as failure:
            self._fail(type(failure))
        else:
            self._wake()
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Fail the request that is waiting."""
        self._fail(ConnectionBroken)
        self._on_lost(self)

    def pause_writing(self) -> None:
        """Stop sending: the upstream reads slower than we write."""
        self._can_write = False

    def resume_writing(self) -> None:
        """Send on."""
        self._can_write = True
        self._wake()

    async def _send_in_pieces(self, head: bytes, body: bytes) -> None:
        self._enter(UpstreamState.SENDING)
        self._transport.write(head)
        left = memoryview(body)
        while left:
            while not self._can_write and not self.answer.status:
                await self._change()
            if self.answer.status:
                return
            self._transport.write(left[:SENT_AT_ONCE_BYTES])
            left = left[SENT_AT_ONCE_BYTES:]
        self._enter(UpstreamState.RECEIVING)

    def _enter(self, state: UpstreamState) -> None:
        if self._state is not UpstreamState.FAILED:
            self._state = state

    def _fail(self, failure: type[TransportError]) -> None:
        """Keep the first failure, and wake the task that waits."""
        if self._state is not UpstreamState.FAILED:
            self._failure = failure
            self._enter(UpstreamState.FAILED)
        self._wake()

    def _change(self) -> "asyncio.Future[None]":
        """Return a future that ends at the next event. Raises the failure if there was one."""
        if self._state is UpstreamState.FAILED:
            raise self._failure from None
        self._waiter = self._loop.create_future()
        return self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class IdleConnections:
    """Idle connections by origin. The last one used is reused first, so that the others expire."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Origin, list[tuple[float, UpstreamConnection]]] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    def pop(self, origin: Origin) -> UpstreamConnection | None:
        """Return a reusable connection to `origin`, or None."""
        waiting = self._waiting.get(origin)
        while waiting:
            idle_since_seconds, connection = waiting.pop()
            if not connection.is_reusable:
                continue
            if self._loop.time() - idle_since_seconds < IDLE_SECONDS:
                return connection
            connection.abort()
        return None

    def add(self, origin: Origin, connection: UpstreamConnection) -> None:
        """Keep a connection whose answer has ended."""
        connection.set_idle()
        self._waiting.setdefault(origin, []).append((self._loop.time(), connection))
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(IDLE_SECONDS, self._sweep)

    def clear(self) -> None:
        """Forget all connections without closing them: their owner does."""
        self._waiting.clear()
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None

    def _sweep(self) -> None:
        """Close expired connections. Each list begins with its oldest."""
        self._sweeping = None
        old_seconds = self._loop.time() - IDLE_SECONDS
        for origin, waiting in tuple(self._waiting.items()):
            fresh = [pair for pair in waiting if pair[0] > old_seconds]
            for _, connection in waiting[: len(waiting) - len(fresh)]:
                connection.abort()
            if fresh:
                self._waiting[origin] = fresh
            else:
                del self._waiting[origin]
        if self._waiting:
            self._sweeping = self._loop.call_later(IDLE_SECONDS, self._sweep)


class Deadline:
    """Calls `on_expiry` when its instant is reached, by the loop's clock.

    One timer serves all waits of a call: a later instant costs a comparison and no new timer.
    """

    __slots__ = ("_loop", "_on_expiry", "_timer", "_timer_seconds", "_until_seconds")

    def __init__(self, on_expiry: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_expiry = on_expiry
        self._until_seconds = inf
        self._timer: asyncio.TimerHandle | None = None
        self._timer_seconds = inf

    def set(self, until_seconds: float) -> None:
        """Expire at this instant. A timer that runs for an earlier one is then set again."""
        self._until_seconds = until_seconds
        if until_seconds < self._timer_seconds:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_seconds = until_seconds
            self._timer = self._loop.call_at(until_seconds, self._due)

    def suspend(self) -> None:
        """Do not expire until `set` is called again."""
        self._until_seconds = inf

    def cancel(self) -> None:
        """Stop the timer for good, and release the owner of the call, which refers to this."""
        self._until_seconds = self._timer_seconds = inf
        self._on_expiry = _ended
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self._timer = None
        self._timer_seconds = inf
        if self._until_seconds <= self._loop.time():
            self._on_expiry()
        elif self._until_seconds < inf:
            self.set(self._until_seconds)


def _ended() -> None:
    """Stand for what a deadline would do that is cancelled."""
