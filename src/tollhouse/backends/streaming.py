"""Streamed chat completions: events into chunks, and the rule when a stream is complete."""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from tollhouse.backends.call import UpstreamCall
from tollhouse.backends.errors import BackendBroke, BackendError, BackendMalformed
from tollhouse.backends.http1 import Headers
from tollhouse.backends.openai_json import Undecodable, decode_chunk
from tollhouse.backends.sse import EventDecoder, RecordTooLong
from tollhouse.backends.types import BackendConfig, UpstreamChunk, UpstreamRequest

EVENTS: Final = b"text/event-stream"
_DONE: Final = b"[DONE]"


class OpenAiStream:
    """Chunks as they arrive. Chunks that precede a failure are returned before it is raised."""

    __slots__ = (
        "_begun",
        "_call",
        "_config",
        "_events",
        "_failure",
        "_finished",
        "_first",
        "_has_begun",
        "_headers",
        "_is_done",
        "_loop",
        "_request",
        "_returned_at_seconds",
    )

    def __init__(
        self,
        config: BackendConfig,
        call: UpstreamCall,
        request: UpstreamRequest,
        headers: Headers,
    ) -> None:
        self._config = config
        self._call = call
        self._request: UpstreamRequest | None = request
        self._headers = headers
        self._loop = asyncio.get_running_loop()
        self._returned_at_seconds = self._loop.time()
        self._first: Sequence[UpstreamChunk] | None = None
        self._restart()

    def _restart(self) -> None:
        """Expect the answer of another replica."""
        self._events = EventDecoder()
        self._begun: set[int] = set()
        self._finished: set[int] = set()
        self._failure: BackendError | None = None
        self._has_begun = False
        self._is_done = False

    async def __aenter__(self) -> Self:
        assert self._request is not None, "a stream is opened once"
        # The request is not kept: its body may be large, and a stream takes long.
        request, self._request = self._request, None
        seconds = request.first_event_seconds or self._config.first_event_seconds
        try:
            self._first = await self._call.begin(
                request, self._headers, media_type=EVENTS, seconds=seconds, read=self._read_first
            )
        except BaseException:
            self._call.close()
            raise
        self._returned_at_seconds = self._loop.time()
        return self

    async def _read_first(self, until_seconds: float) -> Sequence[UpstreamChunk]:
        """Return the first chunks of a replica's answer. Keeps a failure behind them for later."""
        self._restart()
        while not self._is_done:
            if self._failure is not None:
                raise self._failure
            data = await self._call.next_bytes(until_seconds)
            if chunks := self._read(data) if data else self._read_end():
                return chunks
            until_seconds = self._extended(until_seconds)
        raise BackendBroke(replica=self.replica)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._call.close()

    @property
    def replica(self) -> str:
        """The name of the replica that answers."""
        return self._call.replica

    async def next(self) -> Sequence[UpstreamChunk]:
        """Return the chunks that arrived together; none when the answer is complete."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        until_seconds = self._wait_until()
        try:
            while not self._is_done:
                if self._failure is not None:
                    raise self._call.failed(self._failure)
                data = await self._call.next_bytes(until_seconds)
                if chunks := self._read(data) if data else self._read_end():
                    return chunks
                until_seconds = self._extended(until_seconds)
            self._call.completed()
            await self._call.linger()
            return ()
        finally:
            self._returned_at_seconds = self._loop.time()

    def _wait_until(self) -> float:
        """Return when the engine counts as idle, from now on.

        The time in which the caller read the last chunks does not count.
        """
        now_seconds = self._loop.time()
        self._call.extend(now_seconds - self._returned_at_seconds)
        return min(now_seconds + self._config.idle_seconds, self._call.until_seconds)

    def _extended(self, until_seconds: float) -> float:
        """Return when the engine counts as idle, after bytes without a chunk, such as comments."""
        return until_seconds

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
            self._failure = BackendMalformed(replica=self.replica)
        except RecordTooLong:
            self._failure = BackendBroke(replica=self.replica)
        return chunks

    def _chunk(self, payload: bytes) -> UpstreamChunk:
        chunk = decode_chunk(payload)
        for choice in chunk.choices:
            self._begun.add(choice.index)
            if choice.finish_reason is not None:
                self._finished.add(choice.index)
        self._has_begun = True
        return chunk

    def _read_end(self) -> list[UpstreamChunk]:
        """End a stream without `[DONE]`: it is complete if all choices that began have finished."""
        self._end(is_whole=bool(self._begun) and self._begun == self._finished)
        return []

    def _end(self, *, is_whole: bool) -> None:
        if is_whole:
            self._is_done = True
        else:
            self._failure = BackendBroke(replica=self.replica)
