"""Stream an answer to its caller: wait for its first records, meter, encode, end once.

The next record is fetched only after the one before was sent. After the first byte a failure is a
record of the stream. When the caller disconnects, a task of the process reads the answer until its
usage is known.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from tollhouse.backends.errors import BackendError
from tollhouse.backends.types import UpstreamChunk
from tollhouse.base.clock import Clock
from tollhouse.base.errors import GatewayError, without_frames
from tollhouse.base.tasks import Tasks
from tollhouse.contract.errors import ErrorBody
from tollhouse.evaluation import OutputBuffer, PolicyEvaluatorUnavailable
from tollhouse.inference.endpoint import AnswerEncoder
from tollhouse.inference.errors import AnswerExpired
from tollhouse.inference.meter import finish_of
from tollhouse.inference.request_hold import RequestHold
from tollhouse.inference.upstream_stream import ChunkSource
from tollhouse.ledger.errors import DeadlinePassed

logger = logging.getLogger("tollhouse.inference")

DRAIN_GRACE_SECONDS: Final = 20.0
"""How long after a hold's deadline usage may still arrive: the reaper resolves it at 60 s."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamParts:
    """The parts of a streamed answer."""

    upstream: ChunkSource
    encoder: AnswerEncoder
    request_hold: RequestHold
    output: OutputBuffer
    keeps_request: bool
    render_error: Callable[[GatewayError], ErrorBody]
    tasks: Tasks
    clock: Clock


_First = Sequence[UpstreamChunk] | GatewayError


def _chunks(first: _First) -> Sequence[UpstreamChunk]:
    if isinstance(first, GatewayError):
        raise first
    return first


def _may_have_been_billed(failure: GatewayError) -> bool:
    """Whether the backend may bill the failed call; a call that was never made is not billed."""
    if isinstance(failure, DeadlinePassed):
        return False
    return not isinstance(failure, BackendError) or failure.may_have_been_billed


class _Interruption(Exception):
    """Raised where waiting for the backend was interrupted."""

    def __init__(self, failure: GatewayError | None) -> None:
        super().__init__()
        self.failure = failure


class StreamState(Enum):
    """How far an answer was sent."""

    PRIMED = "primed"
    """Nothing was sent."""
    OPENED = "opened"
    """The records before the answer were sent."""
    SENDING = "sending"
    """A part of the answer was sent."""
    OVER = "over"
    """The hold is resolved, or a task of the process resolves it; closing records may be left."""


class StreamedAnswer:
    """An answer that is sent while it is generated.

    Its sender calls `next` until it returns None, or `abandon` when the caller disconnected.
    """

    def __init__(self, parts: StreamParts) -> None:
        self._upstream = parts.upstream
        self._encoder = parts.encoder
        self._request_hold = parts.request_hold
        self.output = parts.output
        self._keeps_request = parts.keeps_request
        self._render_error = parts.render_error
        self._tasks = parts.tasks
        self._clock = parts.clock
        left = self._request_hold.hold.deadline_at - self._clock.now()
        self._expires_seconds = self._clock.monotonic_seconds() + left.total_seconds()
        self._closing: Iterator[bytes] = iter(())
        self._pending: asyncio.Task[_First] | None = None
        self._waiting: asyncio.Task[object] | None = None
        self._is_interrupted = False
        self._interrupted_by: GatewayError | None = None
        self._state = StreamState.PRIMED

    def when_request_is_free(self, release: Callable[[], None]) -> None:
        """Call `release` when the call no longer needs the request; never if a policy does."""
        if self._keeps_request:
            return
        if self._pending is None or self._pending.done():
            release()
        else:
            self._pending.add_done_callback(lambda _: release())

    @property
    def has_begun(self) -> bool:
        """Whether a byte was sent, or none will be: another model cannot answer any more."""
        return self._state is not StreamState.PRIMED

    @property
    def seconds_left(self) -> float:
        """The seconds until the deadline of the hold, after which nothing is sent."""
        return max(0.0, self._expires_seconds - self._clock.monotonic_seconds())

    async def prime(self, *, wait_seconds: float) -> None:
        """Wait a bounded time for the first records, so that an early failure has its status.

        Raises what failed before anything was sent, with the hold resolved.
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
        """Raise what interrupted the answer, while it can still be an error status."""
        if self._interrupted_by is not None:
            raise self._interrupted_by

    async def _first(self) -> "_First":
        """Return the first records, or the failure: it is sent to the caller, not logged."""
        try:
            return await self._upstream.next()
        except GatewayError as failure:
            return failure

    async def next(self) -> bytes | None:
        """Return encoded records, or None when the answer is over or the caller disconnected."""
        if self._state is StreamState.OVER:
            return self._next_of_closing()
        if self._state is StreamState.PRIMED:
            self._state = StreamState.OPENED
            return self._encoder.opening(self._received())
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
        """End the answer at its hold's deadline, and return the records of the error.

        Nothing else is sent after this. A task learns what was used and settles.
        """
        if self._state is StreamState.OVER:
            self.abandon()
            return b""
        return self._expired(AnswerExpired())

    def _expired(self, failure: AnswerExpired) -> bytes:
        self._request_hold.trace.failure = without_frames(failure)
        self.abandon()
        return self._encoder.failure(self._render_error(failure))

    def interrupt(self, failure: GatewayError | None) -> None:
        """Stop waiting: the caller disconnected, or the answer must end by `failure`."""
        self._is_interrupted = True
        self._interrupted_by = failure
        if self._waiting is not None:
            self._waiting.cancel()

    async def _uninterrupted(self) -> bytes:
        """Return the next records, or raise `_Interruption`. Records that arrived are not lost.

        Reads until there is something to send: the caller may not see every record.
        """
        # A new exception each time: a stored one would keep all frames that it passed.
        if self._is_interrupted:
            raise _Interruption(self._interrupted_by)
        self._waiting = asyncio.current_task()
        try:
            while chunks := await self._fetch():
                if self._clock.monotonic_seconds() >= self._expires_seconds:
                    raise AnswerExpired
                if encoded := self._encoder.records(chunks):
                    if retained_bytes := self._encoder.retained_bytes:
                        self.output.retain(retained_bytes)
                    if self._state is StreamState.OPENED:
                        self._state = StreamState.SENDING
                        self._request_hold.start_sending()
                    return encoded
            return await self._finish()
        except asyncio.CancelledError:
            if not self._is_interrupted or self._waiting is None:
                raise
            self._waiting.uncancel()
            raise _Interruption(self._interrupted_by) from None
        finally:
            self._waiting = None

    def _fetch(self) -> Coroutine[Any, Any, Sequence[UpstreamChunk]]:
        """Return the next records, or none at the end."""
        return self._upstream.next() if self._pending is None else self._fetch_first()

    async def _fetch_first(self) -> Sequence[UpstreamChunk]:
        assert self._pending is not None, "the first records are fetched once"
        # The waiting task may be cancelled; the fetch goes on.
        chunks = _chunks(await asyncio.shield(self._pending))
        self._pending = None
        trace = self._request_hold.trace
        trace.replica = self._upstream.replica
        trace.first_byte_seconds = self._clock.monotonic_seconds()
        return chunks

    async def _finish(self) -> bytes:
        self._state = StreamState.OVER
        metered = self._request_hold.complete()
        await self._upstream.close()
        self._closing = self._encoder.closing(finish_of(metered, at=self._clock.now()))
        return next(self._closing)

    async def _fail(self, failure: GatewayError) -> bytes:
        if isinstance(failure, AnswerExpired):
            return self._expired(failure)
        await self._give_up(failure)
        return self._encoder.failure(self._render_error(failure))

    async def _give_up(self, failure: BaseException) -> None:
        """Close the call, then resolve its hold, also if the waiting task is cancelled."""
        self._state = StreamState.OVER
        try:
            await self._close()
        finally:
            await self._settle(failure)

    async def _settle(self, failure: BaseException) -> None:
        if isinstance(failure, GatewayError):
            is_backends = isinstance(failure, BackendError)
            replica = self._upstream.replica or (failure.replica if is_backends else None)
            self._request_hold.trace.replica = replica
            await self._request_hold.fail(
                failure, may_have_been_billed=_may_have_been_billed(failure)
            )
        else:
            self._request_hold.break_off()

    def abandon(self) -> None:
        """The caller disconnected. Returns at once; a task of the process settles."""
        self._closing = iter(())
        self.output.release()
        if self._state is not StreamState.OVER:
            self._state = StreamState.OVER
            self._request_hold.reader_left()
            self._tasks.start("drain", self._drain())

    async def _drain(self) -> None:
        """Read on until the usage is known, or to the end if the backend bills to the end."""
        request_hold = self._request_hold
        try:
            async with asyncio.timeout(self.seconds_left + DRAIN_GRACE_SECONDS):
                await self._read_out()
        except TimeoutError:
            logger.warning("drain_timed_out")
        except PolicyEvaluatorUnavailable as failure:
            await request_hold.fail(failure, may_have_been_billed=True)
        except GatewayError as failure:
            stored = without_frames(failure)
            request_hold.trace.failure = request_hold.trace.failure or stored
            request_hold.break_off(may_have_been_billed=_may_have_been_billed(failure))
        finally:
            request_hold.break_off()
            await self._close()

    async def _close(self) -> None:
        """Close the call, and cancel a fetch that is still running."""
        if self._pending is not None:
            # Cancelling does not change a fetch that has failed.
            self._pending.cancel()
            self._pending = None
        await self._upstream.close()

    async def _read_out(self) -> None:
        """Read until the answer ends, or until cancelling it ends what the backend bills."""
        is_over = False
        while not self._may_cancel() and not is_over:
            is_over = not await self._fetch()
        if is_over or self._request_hold.meter.is_finished:
            self._request_hold.complete()
        else:
            self._request_hold.cancel()

    def _may_cancel(self) -> bool:
        return (
            self._pending is None
            and self._request_hold.resolved.backend.stops_when_cancelled
            and self._request_hold.meter.has_usage
        )
