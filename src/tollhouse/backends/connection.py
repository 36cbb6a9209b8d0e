"""One connection to an upstream: a request out, its answer back, and so on."""

import asyncio
from collections.abc import Callable
from typing import Final, cast

from tollhouse.backends.http_answer import AnswerParser
from tollhouse.backends.transport_errors import ConnectionBroken, TookTooLong, TransportError

SENT_AT_ONCE_BYTES: Final = 1_048_576
"""A larger body is written in pieces, so that other requests come in between."""
BUFFERED_BYTES_MAX: Final = 32_768
"""With more of a body than that unread, no more is taken from the upstream."""


class Connection(asyncio.Protocol):
    """Used by one task at a time. `lost` is called once, when it is gone for good."""

    __slots__ = (
        "_answer",
        "_can_write",
        "_failure",
        "_is_asked",
        "_is_reading",
        "_is_sent",
        "_loop",
        "_lost",
        "_transport",
        "_waiter",
    )

    def __init__(self, lost: Callable[["Connection"], None]) -> None:
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._answer = AnswerParser()
        self._failure: type[TransportError] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._is_asked = False
        self._is_sent = True
        self._is_reading = True
        self._can_write = True

    # What whoever has it calls

    @property
    def is_reusable(self) -> bool:
        """Whether another request may be sent: the one before is over, and nothing is left.

        Its end may have arrived at the very moment at which somebody gave up waiting for it; what
        nobody reads of it may have stopped the reading, and the next answer would not be heard.
        """
        answer = self._answer
        return (
            self._failure is None
            and self._is_sent
            and self._is_reading
            and (not self._is_asked or (answer.is_whole and answer.keeps_alive))
            and not self._transport.is_closing()
        )

    async def ask(self, head: bytes, body: bytes | None) -> tuple[int, dict[bytes, bytes]]:
        """Send a request and wait for the status and headers of its answer.

        An upstream may answer before it has heard everything; the rest is then not sent.
        """
        self._answer.begin()
        self._is_asked = True
        if body is None or len(body) <= SENT_AT_ONCE_BYTES:
            self._transport.write(head + body if body else head)
        else:
            await self._send_in_pieces(head, body)
        while not self._answer.status:
            self._raise_failure()
            await self._change()
        return self._answer.status, self._answer.headers

    async def next_bytes(self) -> bytes:
        """What has arrived of the body, waiting for some; empty at its end."""
        answer = self._answer
        while not answer.buffered_bytes:
            if answer.is_whole:
                return b""
            self._raise_failure()
            await self._change()
        taken = answer.take()
        if not self._is_reading:
            self._is_reading = True
            self._transport.resume_reading()
        return taken

    def rest(self) -> None:
        """Nobody uses it for a while; what arrives meanwhile was asked for by nobody."""
        self._is_asked = False

    def give_up(self) -> None:
        """Whoever waits shall wait no longer: TookTooLong."""
        self._fail(TookTooLong)

    def abort(self) -> None:
        """Cut it at once, whatever was not yet sent or read."""
        self._is_sent = False
        self._transport.abort()

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it to write to."""
        # uvloop's is none of asyncio's by name.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Read on as long as somebody takes it."""
        if not self._is_asked:
            self.abort()
            return
        answer = self._answer
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
        """The end of some bodies; the transport then closes itself."""
        self._end()
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - theirs
        """Whoever waits shall not wait in vain."""
        self._fail(ConnectionBroken)
        self._lost(self)

    def pause_writing(self) -> None:
        """The upstream reads slower than we write."""
        self._can_write = False

    def resume_writing(self) -> None:
        """It has caught up."""
        self._can_write = True
        self._wake()

    # Inside

    async def _send_in_pieces(self, head: bytes, body: bytes) -> None:
        self._is_sent = False
        self._transport.write(head)
        left = memoryview(body)
        while left:
            while not self._can_write and not self._answer.status:
                self._raise_failure()
                await self._change()
            if self._answer.status:
                return
            self._transport.write(left[:SENT_AT_ONCE_BYTES])
            left = left[SENT_AT_ONCE_BYTES:]
        self._is_sent = True

    def _end(self) -> None:
        try:
            self._answer.end()
        except TransportError as failure:
            self._fail(type(failure))
        else:
            self._wake()

    def _fail(self, failure: type[TransportError]) -> None:
        self._failure = self._failure or failure
        self._wake()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure from None

    def _change(self) -> "asyncio.Future[None]":
        """Anything that happens next; whoever waits for it looks again."""
        self._waiter = self._loop.create_future()
        return self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
