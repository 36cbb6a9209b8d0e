"""Sending a streamed answer: records as they arrive, and keep-alive comments in between."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from tollhouse.api.body import Receive, Send
from tollhouse.base.clock import Clock
from tollhouse.base.tasks import Tasks
from tollhouse.evaluation import COUNTED_BYTES_MIN, OutputBufferExceeded
from tollhouse.inference.streaming import StreamedAnswer
from tollhouse.observability import bound_metrics

KEEP_ALIVE: Final = b": keep-alive\n\n"
LAST_WRITE_SECONDS: Final = 5.0
"""The time a caller has, after the deadline, to read the event that its answer has expired."""
STREAM_HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamReply:
    """A success whose body is still being generated."""

    headers: tuple[tuple[str, str], ...]
    answer: StreamedAnswer
    status: int = 200


class ReaderState(Enum):
    """Whether the caller can still be written to."""

    IDLE = "idle"  # no write is in progress
    WRITING = "writing"  # the caller has not read enough of the last write yet
    CLOSED = "closed"  # the caller left, or the gateway closed the connection


class StreamSender:
    """Sends one streamed answer to its caller, after the head was sent."""

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
        self._monotonic_seconds = clock.monotonic_seconds
        self._keep_alive_seconds = keep_alive_seconds
        self._sent_seconds = clock.monotonic_seconds()
        self._state = ReaderState.IDLE

    @property
    def has_reader(self) -> bool:
        """Whether the caller is still connected."""
        return self._state is not ReaderState.CLOSED

    async def run(self, tasks: Tasks) -> None:
        """Send the answer until it ends, its caller leaves, or the deadline of its hold passes."""
        watching = tasks.start("stream-watch", self._watch())
        try:
            async with asyncio.timeout(self._answer.seconds_left):
                await self._send_all()
        except TimeoutError:
            await self._expire()
        except OutputBufferExceeded:
            self._cut("buffer")
        finally:
            watching.cancel()
            # Changes nothing if the answer is complete.
            self._answer.abandon()

    async def _send_all(self) -> None:
        while (records := await self._answer.next()) is not None:
            await self._write(records)
        if self.has_reader:
            await self._send({"type": "http.response.body", "body": b""})

    async def _expire(self) -> None:
        """Settle the answer at its deadline, and send an error event to a caller that still reads.

        An answer that is cut within its last records must not look complete.
        """
        is_stalled = self._state is ReaderState.WRITING
        records = self._answer.expire()
        if is_stalled or (self.has_reader and not records):
            self._cut("deadline")
        elif self.has_reader:
            try:
                async with asyncio.timeout(LAST_WRITE_SECONDS):
                    await self._send({"type": "http.response.body", "body": records})
            except TimeoutError:
                self._cut("deadline")

    def _cut(self, reason: Literal["deadline", "buffer"]) -> None:
        self._state = ReaderState.CLOSED
        bound_metrics.reader_cut(reason)
        self._abort()

    async def _watch(self) -> None:
        """Notice that the caller left, and send comments while the answer is silent."""
        while self.has_reader:
            try:
                async with asyncio.timeout(self._seconds_until_keep_alive()):
                    message = await self._receive()
            except TimeoutError:
                await self._keep_alive()
                continue
            if message["type"] == "http.disconnect":
                self._state = ReaderState.CLOSED
                self._answer.interrupt(None)

    def _seconds_until_keep_alive(self) -> float:
        """Return the rest of the silence; a whole one while the caller does not read."""
        left_seconds = self._sent_seconds + self._keep_alive_seconds - self._monotonic_seconds()
        return left_seconds if left_seconds > 0 else self._keep_alive_seconds

    async def _keep_alive(self) -> None:
        silent_seconds = self._monotonic_seconds() - self._sent_seconds
        if silent_seconds >= self._keep_alive_seconds and self._state is ReaderState.IDLE:
            await self._write(KEEP_ALIVE)

    async def _write(self, records: bytes) -> None:
        """Send whole records, since two tasks write; return when the caller has read most of it.

        A cancelled write leaves the state `WRITING`: its caller does not read. `CLOSED` is final.
        """
        self._sent_seconds = self._monotonic_seconds()
        if self._state is ReaderState.IDLE:
            self._state = ReaderState.WRITING
        if len(records) < COUNTED_BYTES_MIN:
            await self._send({"type": "http.response.body", "body": records, "more_body": True})
        else:
            await self._write_counted(records)
        if self._state is ReaderState.WRITING:
            self._state = ReaderState.IDLE

    async def _write_counted(self, records: bytes) -> None:
        """Send large records, which count as buffered until the caller has read them."""
        output = self._answer.output
        piece = output.begin_write(len(records), lambda: self._cut("buffer"))
        try:
            await self._send({"type": "http.response.body", "body": records, "more_body": True})
        finally:
            output.end_write(piece)
