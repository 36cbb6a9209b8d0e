"""Sending an answer while it is being made: records as they come, comments while none do."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from tollhouse.api.body import Receive, Send
from tollhouse.base.clock import Clock
from tollhouse.base.tasks import Tasks
from tollhouse.inference.errors import OutputBufferExceeded
from tollhouse.inference.streaming import StreamedAnswer
from tollhouse.observability import bound_metrics

KEEP_ALIVE: Final = b": keep-alive\n\n"
STREAM_HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamReply:
    """A success whose body is still being made."""

    headers: tuple[tuple[str, str], ...]
    answer: StreamedAnswer
    status: int = 200


class Broadcast:
    """One stream on its way to its caller. `has_reader` is false once the caller has left."""

    def __init__(
        self,
        answer: StreamedAnswer,
        *,
        receive: Receive,
        send: Send,
        abort: Callable[[], None],
        clock: Clock,
        keep_alive_seconds: float,
    ) -> None:
        self._answer = answer
        self._receive = receive
        self._send = send
        self._abort = abort
        self._clock = clock
        self._keep_alive_seconds = keep_alive_seconds
        self._sent_seconds = clock.monotonic_seconds()
        self._is_writing = False
        self.has_reader = True

    async def run(self, tasks: Tasks) -> None:
        """Send the answer until it is over, its caller has left, or its hold's deadline has come.

        The head was sent before.
        """
        watching = tasks.start("stream-watch", self._watch())
        try:
            async with asyncio.timeout(self._answer.seconds_left):
                await self._send_all()
        except TimeoutError:
            await self._end_late()
        except OutputBufferExceeded:
            self._cut("buffer")
        finally:
            watching.cancel()
            # Nothing to do when it came to its end.
            self._answer.abandon()

    async def _send_all(self) -> None:
        while (records := await self._answer.next()) is not None:
            await self._write(records)
        if self.has_reader:
            await self._send({"type": "http.response.body", "body": b""})

    async def _end_late(self) -> None:
        """Settle what was sent, and say so to a caller who still reads."""
        is_stalled = self._is_writing
        records = self._answer.expire()
        if is_stalled:
            self._cut("deadline")
        elif self.has_reader:
            await self._send({"type": "http.response.body", "body": records})

    def _cut(self, reason: Literal["deadline", "buffer"]) -> None:
        self.has_reader = False
        bound_metrics.reader_cut(reason)
        self._abort()

    async def _watch(self) -> None:
        """Notice that the caller left, and keep the connection of one who waits from being cut."""
        while self.has_reader:
            try:
                async with asyncio.timeout(self._keep_alive_seconds):
                    message = await self._receive()
            except TimeoutError:
                await self._say_something()
                continue
            if message["type"] == "http.disconnect":
                self.has_reader = False
                self._answer.interrupt(None)

    async def _say_something(self) -> None:
        silent_seconds = self._clock.monotonic_seconds() - self._sent_seconds
        if silent_seconds >= self._keep_alive_seconds and not self._is_writing:
            await self._write(KEEP_ALIVE)

    async def _write(self, records: bytes) -> None:
        """Send whole records, since two writers may take turns; return once most is read.

        A write that is cancelled leaves `_is_writing` set: its caller does not read.
        """
        self._sent_seconds = self._clock.monotonic_seconds()
        output = self._answer.output
        piece = output.begin_write(len(records), lambda: self._cut("buffer"))
        self._is_writing = True
        try:
            await self._send({"type": "http.response.body", "body": records, "more_body": True})
            self._is_writing = False
        finally:
            output.end_write(piece)
