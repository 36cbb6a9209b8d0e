"""The records of an answer as its backend sends them, metered."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Protocol

from tollhouse.backends.errors import BackendError
from tollhouse.backends.port import BackendPort, ChunkStream
from tollhouse.backends.types import UpstreamChunk, UpstreamRequest
from tollhouse.inference.engine_fields import asked_chunks
from tollhouse.inference.meter import Meter


class ChunkSource(Protocol):
    """A source of the records of an answer: a backend, or a guard in front of it."""

    @property
    def replica(self) -> str | None:
        """The replica that answers, or None before it does."""
        ...

    async def next(self) -> Sequence[UpstreamChunk]:
        """Return the next records, or none at the end of the answer."""
        ...

    async def close(self) -> None:
        """Close the source; it is not read any more."""
        ...


class UpstreamStream:
    """A metered call to a backend, opened once and closed once.

    `before_call` raises if the call may not begin any more.
    """

    def __init__(
        self,
        port: BackendPort,
        request: UpstreamRequest,
        meter: Meter,
        *,
        completions: int,
        before_call: Callable[[], object],
    ) -> None:
        self._port = port
        self._completions = completions
        self._before_call = before_call
        self._request: UpstreamRequest | None = request
        self._meter = meter
        self._resources = AsyncExitStack()
        self._stream: ChunkStream | None = None

    @property
    def replica(self) -> str | None:
        """The replica that answers, or None before it does."""
        return None if self._stream is None else self._stream.replica

    async def next(self) -> Sequence[UpstreamChunk]:
        """Return the next records, or none at the end. The first call opens the stream."""
        if self._stream is None:
            assert self._request is not None, "a call is opened once"
            # An open call may last for minutes and does not need its request.
            request, self._request = self._request, None
            self._before_call()
            self._stream = await self._resources.enter_async_context(self._port.stream(request))
        chunks = await self._stream.next()
        self._meter.see(chunks)
        return asked_chunks(chunks, self._completions)

    async def close(self) -> None:
        """Close the connection; an engine that still generates stops."""
        await self._resources.aclose()


class FallbackStream:
    """The stream of the first candidate that answers. `following` returns the next candidate's.

    After the first records, or while `may_switch` is false, a failure is final.
    """

    def __init__(
        self,
        first: ChunkSource,
        following: Callable[[BackendError], ChunkSource | None],
        *,
        may_switch: Callable[[], bool],
    ) -> None:
        self._stream = first
        self._following: Callable[[BackendError], ChunkSource | None] | None = following
        self._may_switch: Callable[[], bool] | None = may_switch

    @property
    def replica(self) -> str | None:
        """The replica that answers, or None before it does."""
        return self._stream.replica

    async def next(self) -> Sequence[UpstreamChunk]:
        """Return the next records, or none at the end. The first call finds the candidate."""
        while self._following is not None and self._may_switch is not None:
            try:
                chunks = await self._stream.next()
            except BackendError as failure:
                if not self._may_switch():
                    raise
                # Closed before the hold switches: a call that is not made is not billed.
                await self._stream.close()
                following = self._following(failure)
                if following is None:
                    raise
                self._stream = following
            else:
                self._forget_others()
                return chunks
        return await self._stream.next()

    async def close(self) -> None:
        """Close the present candidate's stream."""
        self._forget_others()
        await self._stream.close()

    def _forget_others(self) -> None:
        """Keep neither the requests of other candidates nor the answer that refers to this."""
        self._following = None
        self._may_switch = None
