"""An answer on its way: primed, metered, rendered, ended once.

Nothing here runs ahead of the caller: a record is fetched when the one before it was sent. After
the first byte a failure is a record, never a cut. A caller who leaves hands the call over to the
process, which goes on until it knows what was used.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final, Protocol

from tollhouse.backends.errors import BackendError
from tollhouse.backends.port import BackendPort, ChunkStream
from tollhouse.backends.types import Ask, UpstreamChunk
from tollhouse.base.clock import Clock
from tollhouse.base.errors import GatewayError, without_frames
from tollhouse.base.tasks import Tasks
from tollhouse.contract.errors import ErrorBody
from tollhouse.inference.allowance import OutputBuffer
from tollhouse.inference.engine_fields import asked_chunks
from tollhouse.inference.errors import AnswerExpired
from tollhouse.inference.meter import Meter, finish_of
from tollhouse.inference.reservation import Reservation
from tollhouse.inference.surface import Rendering
from tollhouse.judging.errors import PolicyEvaluatorUnavailable

logger = logging.getLogger("tollhouse.inference")

DRAIN_GRACE_SECONDS: Final = 20.0
"""How long after a hold's deadline its usage may still arrive: others decide the hold at 60 s."""


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

    def __init__(self, port: BackendPort, ask: Ask, meter: Meter, *, completions: int) -> None:
        self._port = port
        self._completions = completions
        self._ask: Ask | None = ask
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
            assert self._ask is not None, "a call is opened once"
            # An open call needs its request no more, and may last for minutes.
            ask, self._ask = self._ask, None
            self._stream = await self._open.enter_async_context(self._port.stream(ask))
        chunks = await self._stream.next()
        self._meter.see(chunks)
        return asked_chunks(chunks, self._completions)

    async def close(self) -> None:
        """Let the connection go; an engine that still generates stops."""
        await self._open.aclose()


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamParts:
    """What an answer is made of."""

    upstream: Source
    rendering: Rendering
    reservation: Reservation
    output: OutputBuffer
    keeps_request: bool
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
        self.output = parts.output
        self._keeps_request = parts.keeps_request
        self._show = parts.show
        self._tasks = parts.tasks
        self._clock = parts.clock
        left = self._reservation.hold.deadline_at - self._clock.now()
        self._expires_seconds = self._clock.monotonic_seconds() + left.total_seconds()
        self._closing: Iterator[bytes] = iter(())
        self._pending: asyncio.Task[_First] | None = None
        self._waiting: asyncio.Task[object] | None = None
        self._is_interrupted = False
        self._interrupted_by: GatewayError | None = None
        self._has_begun = False
        self._is_over = False

    @property
    def keeps_request(self) -> bool:
        """Whether the request stays in memory: the call is not open yet, or a policy reads it."""
        return self._keeps_request or (self._pending is not None and not self._pending.done())

    @property
    def seconds_left(self) -> float:
        """How long more the answer may be sent: until its hold's deadline."""
        return max(0.0, self._expires_seconds - self._clock.monotonic_seconds())

    async def prime(self, *, wait_seconds: float) -> None:
        """Wait for the first records, so that an early failure keeps its status; but not for ever.

        Raises what failed before anything was sent, with the money already decided.
        """
        self._pending = self._tasks.start("first-records", self._first())
        self._waiting = asyncio.current_task()
        try:
            await asyncio.wait({self._pending}, timeout=wait_seconds)
        except asyncio.CancelledError:
            if not self._is_interrupted or self._waiting is None:
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
        if self._interrupted_by is not None:
            raise self._interrupted_by

    async def _first(self) -> "_First":
        """A backend's failure is the caller's to hear of, not the log's."""
        try:
            return await self._upstream.next()
        except GatewayError as failure:
            return failure

    async def next(self) -> bytes | None:
        """Whole records, ready to be sent; nothing when the answer is over or nobody reads it."""
        if self._is_over:
            return self._next_of_closing()
        if not self._has_begun:
            self._has_begun = True
            return self._rendering.opening(self._received())
        try:
            return await self._uninterrupted()
        except _Interruption as interruption:
            if interruption.failure is None:
                return None
            return await self._fail(interruption.failure)
        except GatewayError as failure:
            return await self._fail(failure)

    def _received(self) -> Sequence[UpstreamChunk]:
        """Return the first records if they arrived before the answer began."""
        if self._pending is None or not self._pending.done():
            return ()
        first = self._pending.result()
        return () if isinstance(first, GatewayError) else first

    def _next_of_closing(self) -> bytes | None:
        piece = next(self._closing, None)
        if piece is None:
            self.output.release()
        return piece

    def expire(self) -> bytes:
        """End the answer at its hold's deadline; return the records that tell the caller.

        Nothing else is sent after this. The process learns what was used and settles.
        """
        if self._is_over:
            self.abandon()
            return b""
        return self._expired(AnswerExpired())

    def _expired(self, failure: AnswerExpired) -> bytes:
        self._reservation.trace.failure = without_frames(failure)
        self.abandon()
        return self._rendering.failure(self._show(failure))

    def interrupt(self, failure: GatewayError | None) -> None:
        """Wait no longer: the caller has left, or, with a failure, the answer must end by it."""
        self._is_interrupted = True
        self._interrupted_by = failure
        if self._waiting is not None:
            self._waiting.cancel()

    async def _uninterrupted(self) -> bytes:
        """What was received and not read is still there when somebody reads again."""
        # A new exception each time: one that was kept would keep every frame that it passed.
        if self._is_interrupted:
            raise _Interruption(self._interrupted_by)
        self._waiting = asyncio.current_task()
        try:
            return await self._advance()
        except asyncio.CancelledError:
            if not self._is_interrupted or self._waiting is None:
                raise
            self._waiting.uncancel()
            raise _Interruption(self._interrupted_by) from None
        finally:
            self._waiting = None

    async def _advance(self) -> bytes:
        """Until there is something to say: a record may hold nothing that the caller may see."""
        while chunks := await self._fetch():
            if self._clock.monotonic_seconds() >= self._expires_seconds:
                raise AnswerExpired
            if told := self._rendering.records(chunks):
                self.output.retain(self._rendering.retained_bytes)
                self._reservation.sending()
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
        metered = self._reservation.meter.usage(is_complete=True)
        self._closing = self._rendering.closing(finish_of(metered, at=self._clock.now()))
        return next(self._closing)

    async def _fail(self, failure: GatewayError) -> bytes:
        if isinstance(failure, AnswerExpired):
            return self._expired(failure)
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
        self._closing = iter(())
        self.output.release()
        if not self._is_over:
            self._is_over = True
            self._reservation.reader_left()
            self._tasks.start("drain", self._drain())

    async def _drain(self) -> None:
        """Go on until the usage is known, and to the end where the backend bills to the end."""
        reservation = self._reservation
        try:
            async with asyncio.timeout(self.seconds_left + DRAIN_GRACE_SECONDS):
                await self._read_out()
        except TimeoutError:
            logger.warning("drain_timed_out")
        except PolicyEvaluatorUnavailable as failure:
            await reservation.fail(failure, may_have_been_billed=True)
        except GatewayError as failure:
            stored = without_frames(failure)
            reservation.trace.failure = reservation.trace.failure or stored
        finally:
            reservation.break_off()
            await self._upstream.close()

    async def _read_out(self) -> None:
        """Read until the answer ends, or until cancelling it ends what the backend bills."""
        is_over = False
        while not self._may_cancel() and not is_over:
            is_over = not await self._fetch()
        if is_over or self._reservation.meter.is_finished:
            self._reservation.complete()
        else:
            self._reservation.cancel()

    def _may_cancel(self) -> bool:
        return (
            self._pending is None
            and self._reservation.offer.backend.stops_when_cancelled
            and self._reservation.meter.has_usage
        )
