"""Sending an answer while it is being made: records as they come, comments while none do."""

import asyncio
from dataclasses import dataclass
from typing import Final

from tollhouse.api.body import Receive, Send
from tollhouse.base.clock import Clock
from tollhouse.base.tasks import Tasks
from tollhouse.inference.streaming import StreamedAnswer

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
        clock: Clock,
        keep_alive_seconds: float,
    ) -> None:
        self._answer = answer
        self._receive = receive
        self._send = send
        self._clock = clock
        self._keep_alive_seconds = keep_alive_seconds
        self._sent_seconds = clock.monotonic_seconds()
        self.has_reader = True

    async def run(self, tasks: Tasks) -> None:
        """Until the answer is over or nobody reads it; the head was sent before."""
        watching = tasks.start("stream-watch", self._watch())
        try:
            while (records := await self._answer.next()) is not None:
                await self._write(records)
            if self.has_reader:
                await self._send({"type": "http.response.body", "body": b""})
        finally:
            watching.cancel()
            # Nothing to do when it came to its end.
            self._answer.abandon()

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
        if silent_seconds >= self._keep_alive_seconds:
            await self._write(KEEP_ALIVE)

    async def _write(self, records: bytes) -> None:
        """Whole records only: two writers may take turns."""
        self._sent_seconds = self._clock.monotonic_seconds()
        await self._send({"type": "http.response.body", "body": records, "more_body": True})
