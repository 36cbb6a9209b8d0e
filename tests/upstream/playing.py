"""Sends one answer by its script: with pauses, in pieces, or cut off."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from tests.upstream.connection import LAST_CHUNK, ScriptedConnection
from tests.upstream.exchanges import ExchangeOutcome, RecordedExchange
from tests.upstream.scripts import UpstreamScript

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream; charset=utf-8"
COMMENT: Final = ": still here"
DRAIN_EVENTS: Final = 32
"""How many events are written before other tasks run."""
SPLIT_PAUSE_MS: Final = 1
"""The pause between two pieces, so that the peer reads them separately."""


class _Broken(Exception):
    """The script has ended the connection."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Player:
    """Sends one answer. `pause_ms` is the pause between events if the script states none.

    `names_events`: events have names, as in Anthropic's API, which are the types in their data.
    """

    connection: ScriptedConnection
    exchange: RecordedExchange
    script: UpstreamScript
    pause_ms: int
    names_events: bool = False

    async def whole(self, body: bytes) -> None:
        """Send an answer that is one body. It is chunked if the script splits it."""
        is_split = self.script.split_bytes is not None
        write = self.connection.write_chunk if is_split else self.connection.write
        try:
            await self._before_head()
            length = None if is_split else len(body)
            self.connection.head(self.script.status, self._headers(JSON), length)
            await self._before_first_event()
            cut = self.script.cut
            if cut is not None and cut.inside and cut.after == 0:
                write(body[: len(body) // 2])
                await self._break()
                body = body[len(body) // 2 :]
            await self._write(body, write)
            await self._sent_one()
        except _Broken:
            return
        if is_split:
            self.connection.write(LAST_CHUNK)
        self._finish()

    async def stream(self, payloads: Iterable[bytes]) -> None:
        """Send an answer as the events of a stream."""
        try:
            await self._before_head()
            self.connection.head(self.script.status, self._headers(EVENTS), None)
            await self._before_first_event()
            if self.script.split_at_byte is not None:
                await self._send_in_two(payloads, self.script.split_at_byte)
                payloads = ()
            for payload in self._played(payloads):
                await self._send(self._framed(payload))
        except _Broken:
            return
        self.connection.write(LAST_CHUNK)
        self._finish()

    def now(self, body: bytes) -> None:
        """Send what `whole` sends, at once and without a task, for an immediate script."""
        self.connection.head(self.script.status, self._headers(JSON), len(body))
        self.connection.write(body)
        self.exchange.events_sent = 1
        self._finish()

    def _finish(self) -> None:
        self.exchange.finish(ExchangeOutcome.COMPLETE)
        self.connection.finish()

    def _headers(self, content_type: str) -> Sequence[tuple[str, str]]:
        return [
            ("content-type", self.script.content_type or content_type),
            *self.script.headers.items(),
        ]

    # Waiting and breaking off

    async def _before_head(self) -> None:
        await self._wait(self.script.before_head_ms)
        if self.script.cut is not None and self.script.cut.after == "request":
            await self._break()

    async def _before_first_event(self) -> None:
        cut = self.script.cut
        if cut is not None and cut.after == 0 and not cut.inside:
            await self._break()
        await self._wait(self.script.before_first_event_ms)

    async def _sent_one(self) -> None:
        self.exchange.events_sent += 1
        cut = self.script.cut
        if cut is not None and cut.after == self.exchange.events_sent and not cut.inside:
            await self._break()

    async def _break(self) -> None:
        assert self.script.cut is not None
        match self.script.cut.how:
            case "stall":
                await self.exchange.stand_still()
                return
            case "close":
                self.exchange.finish(ExchangeOutcome.CUT)
                self.connection.close()
            case "reset":
                self.exchange.finish(ExchangeOutcome.CUT)
                # The peer has to receive what was written before the reset.
                await self.connection.drain()
                self.connection.reset()
        raise _Broken

    async def _wait(self, wait_ms: int) -> None:
        if wait_ms:
            await asyncio.sleep(wait_ms / 1000)

    # Records

    def _played(self, payloads: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the records. The script's error replaces one of them and ends the stream."""
        error = self.script.error
        for number, payload in enumerate(payloads):
            if error is not None and number == self.script.error_after_events:
                if self.names_events:
                    yield msgspec.json.encode({"type": "error", "error": error})
                    return
                yield msgspec.json.encode({"error": error})
                if self.script.done:
                    yield b"[DONE]"
                return
            yield payload

    def _framed(self, payload: bytes) -> bytes:
        end = self.script.line_end.encode()
        comment = COMMENT.encode() + end + end if self.script.comments else b""
        if self.names_events:
            comment += b"event: %b%b" % (payload.split(b'"', 4)[3], end)
        return b"%bdata: %b%b%b" % (comment, payload, end, end)

    async def _send(self, record: bytes) -> None:
        number = self.exchange.events_sent
        if number:
            pause_ms = self.script.between_events_ms
            await self._wait(self.pause_ms if pause_ms is None else pause_ms)
        if self.script.inserted is not None and number == self.script.inserted_after_events:
            self.connection.write_chunk(self.script.inserted.encode())
        cut = self.script.cut
        if cut is not None and cut.inside and cut.after == number:
            self.connection.write_half_chunk(record)
            await self._break()
            self.connection.write(record[len(record) // 2 :] + b"\r\n")
        else:
            await self._write(record, self.connection.write_chunk)
        await self._sent_one()
        if number % DRAIN_EVENTS == 0:
            await self.connection.drain()

    async def _send_in_two(self, payloads: Iterable[bytes], at_byte: int) -> None:
        records = [self._framed(payload) for payload in self._played(payloads)]
        stream = b"".join(records)
        for piece in (stream[:at_byte], stream[at_byte:]):
            # An empty chunk would end the body.
            if piece:
                self.connection.write_chunk(piece)
            await self._wait(SPLIT_PAUSE_MS)
        self.exchange.events_sent = len(records)

    async def _write(self, data: bytes, write: Callable[[bytes], None]) -> None:
        size = self.script.split_bytes or len(data)
        for start in range(0, len(data), size):
            write(data[start : start + size])
            if size < len(data):
                await self.connection.drain()
