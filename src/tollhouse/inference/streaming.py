"""An answer on its way: primed, metered, rendered, ended once.

Nothing here runs ahead of the caller: a record is fetched when the one before it was sent. After
the first byte a failure is a record, never a cut. A caller who leaves hands the call over to the
process, which goes on until it knows what was used.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Protocol

from tollhouse.backends.errors import BackendError
from tollhouse.backends.port import BackendPort, ChunkStream
from tollhouse.backends.types import Ask, UpstreamChunk
from tollhouse.base.clock import Clock
from tollhouse.base.errors import GatewayError
from tollhouse.base.tasks import Tasks
from tollhouse.contract.errors import ErrorBody
from tollhouse.inference.meter import Meter
from tollhouse.inference.reservation import Reservation
from tollhouse.inference.surface import Finish, Rendering
from tollhouse.judging.errors import PolicyEvaluatorUnavailable


class Source(Protocol):
    """Where an answer's records come from: a backend, or what stands between it and the caller."""

    @property
    def replica(self) -> str | None:
        """Which replica answers, once one does."""
        ...

    async def next(self) -> Sequence[UpstreamChunk]:
        """The next records; none at the end of the answer."""
        ...

    async def close(self) -> None:
        """Nothing is read any more."""
        ...


class Upstream:
    """A call to a backend with its connection: opened once, closed once, metered as it comes."""

    def __init__(self, port: BackendPort, ask: Ask, meter: Meter) -> None:
        self._port = port
        self._ask = ask
        self._meter = meter
        self._open = AsyncExitStack()
        self._stream: ChunkStream | None = None

    @property
    def replica(self) -> str | None:
        """Which replica answers, once one does."""
        return None if self._stream is None else self._stream.replica

    async def next(self) -> Sequence[UpstreamChunk]:
        """The next records; none at the end of the answer. The first call opens the stream."""
        if self._stream is None:
            self._stream = await self._open.enter_async_context(self._port.stream(self._ask))
        chunks = await self._stream.next()
        self._meter.see(chunks)
        return chunks

    async def close(self) -> None:
        """Let the connection go; an engine that still generates stops."""
        await self._open.aclose()


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamParts:
    """What an answer is made of."""

    upstream: Source
    rendering: Rendering
    reservation: Reservation
    show: Callable[[GatewayError], ErrorBody]
    tasks: Tasks
    clock: Clock


_First = Sequence[UpstreamChunk] | GatewayError


def _chunks(first: _First) -> Sequence[UpstreamChunk]:
    if isinstance(first, GatewayError):
        raise first
    return first


class _Interruption(Exception):
    """Why waiting for the backend ended before the backend said anything."""

    def __init__(self, failure: GatewayError | None) -> None:
        super().__init__()
        self.failure = failure


class StreamedAnswer:
    """Whoever sends it calls `next` until nothing comes, or `abandon` when the caller left."""

    def __init__(self, parts: StreamParts) -> None:
        self._upstream = parts.upstream
        self._rendering = parts.rendering
        self._reservation = parts.reservation
        self._show = parts.show
        self._tasks = parts.tasks
        self._clock = parts.clock
        self._pending: asyncio.Task[_First] | None = None
        self._waiting: asyncio.Task[object] | None = None
        self._interruption: _Interruption | None = None
        self._has_begun = False
        self._is_over = False

    async def prime(self, *, wait_seconds: float) -> None:
        """Wait for the first records, so that an early failure keeps its status; but not for ever.

        Raises what failed before anything was sent, with the money already decided.
        """
        self._pending = self._tasks.start("first-records", self._first())
        self._waiting = asyncio.current_task()
        try:
            await asyncio.wait({self._pending}, timeout=wait_seconds)
        except asyncio.CancelledError:
            if self._interruption is None or self._waiting is None:
                self.abandon()
                raise
            self._waiting.uncancel()
        finally:
            self._waiting = None
        try:
            self._refuse_interrupted()
            if self._pending.done():
                _chunks(self._pending.result())
        except BaseException as failure:
            await self._give_up(failure)
            raise

    def _refuse_interrupted(self) -> None:
        """Whoever must stop before anything was sent can still say so by a status."""
        if self._interruption is not None and self._interruption.failure is not None:
            raise self._interruption.failure

    async def _first(self) -> "_First":
        """A backend's failure is the caller's to hear of, not the log's."""
        try:
            return await self._upstream.next()
        except GatewayError as failure:
            return failure

    async def next(self) -> bytes | None:
        """Whole records, ready to be sent; nothing when the answer is over or nobody reads it."""
        if self._is_over:
            return None
        if not self._has_begun:
            self._has_begun = True
            return self._rendering.opening()
        try:
            return await self._uninterrupted()
        except _Interruption as interruption:
            if interruption.failure is None:
                return None
            return await self._fail(interruption.failure)
        except GatewayError as failure:
            return await self._fail(failure)

    def interrupt(self, failure: GatewayError | None) -> None:
        """Wait no longer: the caller has left, or, with a failure, the answer must end by it."""
        self._interruption = _Interruption(failure)
        if self._waiting is not None:
            self._waiting.cancel()

    async def _uninterrupted(self) -> bytes:
        """What was received and not read is still there when somebody reads again."""
        if self._interruption is not None:
            raise self._interruption
        self._waiting = asyncio.current_task()
        try:
            return await self._advance()
        except asyncio.CancelledError:
            if self._interruption is None or self._waiting is None:
                raise
            self._waiting.uncancel()
            raise self._interruption from None
        finally:
            self._waiting = None

    async def _advance(self) -> bytes:
        """Until there is something to say: a record may hold nothing that the caller may see."""
        while chunks := await self._fetch():
            if told := self._rendering.records(chunks):
                return told
        return await self._finish()

    async def _fetch(self) -> Sequence[UpstreamChunk]:
        if self._pending is None:
            return await self._upstream.next()
        # Whoever waits may be cancelled; what is waited for goes on.
        chunks = _chunks(await asyncio.shield(self._pending))
        self._pending = None
        trace = self._reservation.trace
        trace.replica = self._upstream.replica
        trace.first_byte_seconds = self._clock.monotonic_seconds()
        return chunks

    async def _finish(self) -> bytes:
        self._is_over = True
        self._reservation.complete()
        await self._upstream.close()
        usage = self._reservation.meter.usage()
        return self._rendering.closing(Finish(usage=usage, at=self._clock.now()))

    async def _fail(self, failure: GatewayError) -> bytes:
        await self._give_up(failure)
        return self._rendering.failure(self._show(failure))

    async def _give_up(self, failure: BaseException) -> None:
        self._is_over = True
        if self._pending is not None:
            # Nobody will read it; one that has failed is not changed by this.
            self._pending.cancel()
            self._pending = None
        await self._upstream.close()
        if isinstance(failure, GatewayError):
            is_backends = isinstance(failure, BackendError)
            replica = self._upstream.replica or (failure.replica if is_backends else None)
            self._reservation.trace.replica = replica
            billed = not is_backends or failure.may_have_been_billed
            await self._reservation.fail(failure, may_have_been_billed=billed)
        else:
            self._reservation.break_off()

    def abandon(self) -> None:
        """Nobody reads any more. Never waits: the process settles what is left."""
        if not self._is_over:
            self._is_over = True
            self._reservation.has_no_reader = True
            self._tasks.start("drain", self._drain())

    async def _drain(self) -> None:
        """Go on until the usage is known, and to the end where the backend bills to the end."""
        reservation = self._reservation
        try:
            while not self._may_cancel() and await self._fetch():
                pass
            # Also where it is cancelled: leaving is no failure, and what was said last is exact.
            reservation.complete()
        except PolicyEvaluatorUnavailable as failure:
            await reservation.fail(failure, may_have_been_billed=True)
        except GatewayError as failure:
            reservation.trace.failure = reservation.trace.failure or failure
        finally:
            reservation.break_off()
            await self._upstream.close()

    def _may_cancel(self) -> bool:
        return (
            self._pending is None
            and self._reservation.offer.backend.stops_when_cancelled
            and self._reservation.meter.has_usage
        )
