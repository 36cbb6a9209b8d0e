"""Evaluate response policies on an answer: buffer it until the verdict, or only monitor it.

While an enforcing policy applies, the caller receives nothing before the verdict on the whole
answer. To the reader this is a backend that is slow and then sends everything at once.
"""

from collections import deque
from collections.abc import Sequence
from functools import partial

import msgspec

from tollhouse.backends.errors import BackendRejected
from tollhouse.backends.types import UpstreamChunk, UpstreamCompletion
from tollhouse.evaluation import (
    AnswerBuffersFull,
    RequestEvaluation,
    StreamAccumulator,
    StreamCheckpoints,
    UnjudgedAnswer,
    completion_content,
)
from tollhouse.inference.engine_fields import judged_chunks
from tollhouse.inference.request_hold import RequestHold
from tollhouse.inference.upstream_stream import ChunkSource
from tollhouse.observability.policy_metrics import DecisionLoss

NOT_BUFFERED = (UnjudgedAnswer, AnswerBuffersFull)
BUFFERED_COPIES = 2
"""A stream is buffered as encoded records, and once more as text for the judge."""
WHOLE_COPIES, WHOLE_COPIES_WITH_LOGPROBS = 2, 7
"""The memory of a decoded answer, as a measured multiple of its bytes."""
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(list[UpstreamChunk])


def guarded_stream(
    source: ChunkSource, evaluation: RequestEvaluation | None, request_hold: RequestHold
) -> ChunkSource:
    """Return the stream that the caller reads, by the policies that apply to the answer."""
    if evaluation is None:
        return source
    if evaluation.buffers_answer:
        return BufferedStream(source, evaluation, request_hold)
    return MonitoredStream(source, evaluation) if evaluation.monitors_answer else source


async def check_answer(evaluation: RequestEvaluation, completion: UpstreamCompletion) -> None:
    """Evaluate response policies on a complete answer, which is buffered meanwhile."""
    if not evaluation.buffers_answer and not evaluation.monitors_answer:
        return
    size_bytes = len(_encoder.encode(completion))
    if not evaluation.buffers_answer:
        evaluation.monitor_answer(partial(completion_content, completion), size_bytes)
        return
    buffer_quota = evaluation.buffer_quota()
    try:
        buffer_quota.acquire(size_bytes, copies=_copies(completion))
    except NOT_BUFFERED:
        evaluation.drop_answer(DecisionLoss.NO_ROOM)
        raise
    try:
        await evaluation.check_answer(partial(completion_content, completion), size_bytes)
    finally:
        buffer_quota.release()


def _copies(completion: UpstreamCompletion) -> int:
    has_logprobs = any(choice.logprobs is not None for choice in completion.choices)
    return WHOLE_COPIES_WITH_LOGPROBS if has_logprobs else WHOLE_COPIES


class BufferedStream:
    """Buffers one answer until its verdict. The quota counts all buffered bytes, not only text."""

    def __init__(
        self, source: ChunkSource, evaluation: RequestEvaluation, request_hold: RequestHold
    ) -> None:
        self._source = source
        self._evaluation = evaluation
        self._request_hold = request_hold
        self._buffer_quota = evaluation.buffer_quota()
        self._accumulator = StreamAccumulator()
        self._buffered: deque[bytes] = deque()
        self._size_bytes = 0
        self._is_counted = False
        self._is_released = False

    @property
    def replica(self) -> str | None:
        """The replica that answers, or None before it does."""
        return self._source.replica

    async def next(self) -> Sequence[UpstreamChunk]:
        """Return the next records. The first call waits for the verdict on the whole answer."""
        if not self._is_released:
            self._request_hold.start_buffering()
            try:
                await self._buffer_and_evaluate()
            except BaseException as failure:
                self._count_undecided(failure)
                raise
            self._request_hold.end_buffering()
            self._is_released = True
            self._accumulator = StreamAccumulator()
        return _decoder.decode(self._buffered.popleft()) if self._buffered else ()

    async def close(self) -> None:
        """Drop the buffer, and close the call."""
        self._buffer_quota.release()
        self._buffered.clear()
        self._accumulator = StreamAccumulator()
        await self._source.close()

    def _count_undecided(self, failure: BaseException) -> None:
        if self._size_bytes and not self._is_counted:
            is_buffered = not isinstance(failure, NOT_BUFFERED)
            self._evaluation.drop_answer(
                DecisionLoss.STOPPED if is_buffered else DecisionLoss.NO_ROOM
            )

    async def _buffer_and_evaluate(self) -> None:
        checkpoints, is_whole = self._evaluation.checkpoints(), False
        try:
            async with checkpoints.until_match():
                is_whole = await self._gather(checkpoints)
        except BackendRejected as failure:
            raise failure.without_words() from None
        except UnjudgedAnswer:
            await self._read_until_final()
            raise
        self._request_hold.meter.answer_ended()
        # From here on the evaluation itself records or drops the answer.
        self._is_counted = True
        if checkpoints.match is not None:
            self._evaluation.refuse_early(
                checkpoints.match, self._accumulator.content, self._size_bytes
            )
        if not is_whole:
            self._buffered.clear()
            self._evaluation.drop_answer(DecisionLoss.STOPPED)
            return
        await self._evaluation.check_answer(self._accumulator.content, self._size_bytes)

    async def _read_until_final(self) -> None:
        """Read an answer that is too long until its usage is final; it is charged."""
        self._buffered.clear()
        while not self._request_hold.may_be_cut_short and await self._source.next():
            pass
        self._request_hold.meter.answer_ended()

    async def _gather(self, checkpoints: StreamCheckpoints) -> bool:
        """Buffer the whole answer; return False if it was cut because its caller disconnected."""
        while chunks := judged_chunks(await self._source.next()):
            encoded = _encoder.encode(chunks)
            self._size_bytes += len(encoded)
            self._buffer_quota.acquire(len(encoded), copies=BUFFERED_COPIES)
            self._buffered.append(encoded)
            self._accumulator.add(chunks)
            may_end = self._request_hold.may_be_cut_short
            if not self._request_hold.has_reader and may_end:
                return False
            checkpoints.check_if_due(self._accumulator, self._size_bytes, may_end=may_end)
        return True


class MonitoredStream:
    """Passes one answer on, and evaluates monitoring policies when it has ended.

    A too long answer is not evaluated at all: part of it says nothing about the whole.
    """

    def __init__(self, source: ChunkSource, evaluation: RequestEvaluation) -> None:
        self._source = source
        self._evaluation = evaluation
        self._accumulator: StreamAccumulator | None = StreamAccumulator()
        self._size_bytes = 0
        self._is_over = False

    @property
    def replica(self) -> str | None:
        """The replica that answers, or None before it does."""
        return self._source.replica

    async def next(self) -> Sequence[UpstreamChunk]:
        """Return the next records as they arrive."""
        chunks = await self._source.next()
        if not chunks:
            self._end()
        elif self._accumulator is not None:
            self._accumulator.add(chunks)
            self._size_bytes += len(_encoder.encode(chunks))
            if self._size_bytes > self._evaluation.monitored_bytes_max:
                self._accumulator = None
        return chunks

    async def close(self) -> None:
        """Evaluate what arrived so far, and close the call."""
        self._end()
        await self._source.close()

    def _end(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._accumulator is None:
            self._evaluation.drop_answer(DecisionLoss.NO_ROOM)
        else:
            self._evaluation.monitor_answer(self._accumulator.content, self._size_bytes)
