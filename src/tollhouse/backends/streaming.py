"""A stream of OpenAI's chunks: records into chunks, and when a stream counts as whole."""

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from tollhouse.backends.decoding import Undecodable, decode_chunk
from tollhouse.backends.errors import BackendBroke, BackendError, BackendNonsense
from tollhouse.backends.exchange import Exchange
from tollhouse.backends.sse import EventDecoder, RecordTooLong
from tollhouse.backends.types import Ask, BackendConfig, UpstreamChunk

EVENTS: Final = "text/event-stream"
_DONE: Final = b"[DONE]"


class OpenAiStream:
    """Chunks as they arrive. What was understood before a failure is given before it is raised."""

    __slots__ = (
        "_ask",
        "_begun",
        "_config",
        "_events",
        "_exchange",
        "_failure",
        "_finished",
        "_first_until_seconds",
        "_has_begun",
        "_headers",
        "_is_done",
        "_loop",
        "_returned_at_seconds",
        "_until_seconds",
    )

    def __init__(
        self, config: BackendConfig, exchange: Exchange, ask: Ask, headers: Mapping[str, str]
    ) -> None:
        self._config = config
        self._exchange = exchange
        self._ask: Ask | None = ask
        self._headers = headers
        self._events = EventDecoder()
        self._loop = asyncio.get_running_loop()
        now_seconds = self._loop.time()
        self._until_seconds = now_seconds + config.total_seconds
        self._first_until_seconds = now_seconds + config.first_event_seconds
        self._returned_at_seconds = now_seconds
        self._begun: set[int] = set()
        self._finished: set[int] = set()
        self._failure: BackendError | None = None
        self._has_begun = False
        self._is_done = False

    async def __aenter__(self) -> Self:
        seconds = min(self._config.first_event_seconds, self._config.total_seconds)
        assert self._ask is not None, "a stream is opened once"
        ask, self._ask = self._ask, None
        try:
            await self._exchange.open(ask, self._headers, media_type=EVENTS, seconds=seconds)
        except BaseException:
            self._exchange.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exchange.close()

    @property
    def replica(self) -> str:
        """Which replica answers."""
        return self._exchange.replica

    async def next(self) -> Sequence[UpstreamChunk]:
        """The chunks that arrived together; none when the answer is complete."""
        try:
            return await self._next()
        finally:
            self._returned_at_seconds = self._loop.time()

    async def _next(self) -> Sequence[UpstreamChunk]:
        if self._has_begun:
            # Time in which the caller read is not the engine's.
            self._until_seconds += self._loop.time() - self._returned_at_seconds
        until_seconds = min(self._wait_until(), self._until_seconds)
        while not self._is_done:
            if self._failure is not None:
                raise self._exchange.failed(self._failure)
            data = await self._exchange.next_bytes(until_seconds)
            if chunks := self._read(data) if data else self._read_end():
                return chunks
        self._exchange.completed()
        await self._exchange.linger()
        return ()

    def _wait_until(self) -> float:
        """Waiting begins when the caller asks: a slow caller is not an idle engine."""
        if self._has_begun:
            return self._loop.time() + self._config.idle_seconds
        return self._first_until_seconds

    def _read(self, data: bytes) -> list[UpstreamChunk]:
        chunks: list[UpstreamChunk] = []
        try:
            for payload in self._events.feed(data):
                if payload.strip() == _DONE:
                    self._end(is_whole=self._has_begun)
                    break
                # An empty record keeps a connection alive.
                if payload:
                    chunks.append(self._chunk(payload))
        except Undecodable:
            self._failure = BackendNonsense(replica=self.replica)
        except RecordTooLong:
            self._failure = BackendBroke(replica=self.replica)
        return chunks

    def _chunk(self, payload: bytes) -> UpstreamChunk:
        chunk = decode_chunk(payload)
        for choice in chunk.choices:
            self._begun.add(choice.index)
            if choice.finish_reason is not None:
                self._finished.add(choice.index)
        if not self._has_begun:
            self._has_begun = True
            self._exchange.began()
        return chunk

    def _read_end(self) -> list[UpstreamChunk]:
        """Without `[DONE]` an answer is whole if all choices that began have ended."""
        self._end(is_whole=bool(self._begun) and self._begun == self._finished)
        return []

    def _end(self, *, is_whole: bool) -> None:
        if is_whole:
            self._is_done = True
        else:
            self._failure = BackendBroke(replica=self.replica)
