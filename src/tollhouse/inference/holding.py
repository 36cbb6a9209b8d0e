"""Between a backend's answer and its caller: held back until it is judged, or looked at in passing.

While an enforcing policy applies, nothing that the backend said leaves before the verdict over all
of it. To whoever reads the answer this is a backend that takes long and then says all at once.
"""

from collections import deque
from collections.abc import Sequence
from functools import partial

import msgspec

from tollhouse.backends.errors import BackendRejected
from tollhouse.backends.types import UpstreamChunk, UpstreamCompletion
from tollhouse.inference.checkpoints import Checkpoints
from tollhouse.inference.engine_fields import judged_chunks
from tollhouse.inference.errors import NoRoomToHold, UnjudgedAnswer
from tollhouse.inference.hearing import Hearing
from tollhouse.inference.reservation import Reservation
from tollhouse.inference.streaming import Source
from tollhouse.judging.content import of_completion
from tollhouse.judging.gathering import Gathered
from tollhouse.observability.metrics import DecisionLoss

NOT_HELD = (UnjudgedAnswer, NoRoomToHold)
HELD_COPIES = 2
"""A stream is held as encoded records, and joined for the judge."""
WHOLE_COPIES, WHOLE_COPIES_WITH_LOGPROBS = 2, 7
"""What a decoded answer takes in memory, as a multiple of its bytes; measured."""
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(list[UpstreamChunk])


def through(source: Source, hearing: Hearing | None, reservation: Reservation) -> Source:
    """What the caller reads from, by what applies to the answer."""
    if hearing is None:
        return source
    if hearing.holds_answer:
        return HeldSource(source, hearing, reservation)
    return WatchedSource(source, hearing) if hearing.watches_answer else source


async def judge_whole(hearing: Hearing, completion: UpstreamCompletion) -> None:
    """An answer that came in one piece is held too, for as long as it is being judged."""
    if not hearing.holds_answer and not hearing.watches_answer:
        return
    size_bytes = len(_encoder.encode(completion))
    if not hearing.holds_answer:
        hearing.watch_answer(partial(of_completion, completion), size_bytes)
        return
    allowance = hearing.allowance()
    try:
        allowance.take(size_bytes, copies=_copies(completion))
    except NOT_HELD:
        hearing.drop_answer(DecisionLoss.NO_ROOM)
        raise
    try:
        await hearing.judge_answer(partial(of_completion, completion), size_bytes)
    finally:
        allowance.give_back()


def _copies(completion: UpstreamCompletion) -> int:
    has_logprobs = any(choice.logprobs is not None for choice in completion.choices)
    return WHOLE_COPIES_WITH_LOGPROBS if has_logprobs else WHOLE_COPIES


class HeldSource:
    """One answer. What is counted is all that is held, not only the text in it."""

    def __init__(self, source: Source, hearing: Hearing, reservation: Reservation) -> None:
        self._source = source
        self._hearing = hearing
        self._reservation = reservation
        self._allowance = hearing.allowance()
        self._gathered = Gathered()
        self._held: deque[bytes] = deque()
        self._size_bytes = 0
        self._is_before_judge = False
        self._is_released = False

    @property
    def replica(self) -> str | None:
        """Which replica answers, once one does."""
        return self._source.replica

    async def next(self) -> Sequence[UpstreamChunk]:
        """The first time, wait for the end of the answer and for the verdict."""
        if not self._is_released:
            self._reservation.withhold()
            try:
                await self._hold()
            except BaseException as failure:
                self._count_undecided(failure)
                raise
            self._reservation.release()
            self._is_released = True
            self._gathered = Gathered()
        return _decoder.decode(self._held.popleft()) if self._held else ()

    async def close(self) -> None:
        """Nothing is held any more."""
        self._allowance.give_back()
        self._held.clear()
        self._gathered = Gathered()
        await self._source.close()

    def _count_undecided(self, failure: BaseException) -> None:
        if self._size_bytes and not self._is_before_judge:
            is_held = not isinstance(failure, NOT_HELD)
            self._hearing.drop_answer(DecisionLoss.STOPPED if is_held else DecisionLoss.NO_ROOM)

    async def _hold(self) -> None:
        checkpoints, is_whole = self._hearing.checkpoints(), False
        try:
            async with checkpoints.until_match():
                is_whole = await self._gather(checkpoints)
        except BackendRejected as failure:
            raise failure.without_words() from None
        except UnjudgedAnswer:
            await self._hear_out()
            raise
        self._reservation.answer_ended()
        self._is_before_judge = True
        if checkpoints.match is not None:
            self._hearing.refuse_early(checkpoints.match, self._gathered.content, self._size_bytes)
        if not is_whole:
            self._held.clear()
            self._hearing.drop_answer(DecisionLoss.STOPPED)
            return
        await self._hearing.judge_answer(self._gathered.content, self._size_bytes)

    async def _hear_out(self) -> None:
        """What is too long is charged: hang up where that ends the bill, else wait for its end."""
        self._held.clear()
        while not self._reservation.may_be_cut_short and await self._source.next():
            pass
        self._reservation.answer_ended()

    async def _gather(self, checkpoints: Checkpoints) -> bool:
        """Whether it is all there: where nobody reads it any more, the backend may stop."""
        while chunks := judged_chunks(await self._source.next()):
            encoded = _encoder.encode(chunks)
            self._size_bytes += len(encoded)
            self._allowance.take(len(encoded), copies=HELD_COPIES)
            self._held.append(encoded)
            self._gathered.see(chunks)
            may_end = self._reservation.may_be_cut_short
            if not self._reservation.has_reader and may_end:
                return False
            checkpoints.look(self._gathered, self._size_bytes, may_end=may_end)
        return True


class WatchedSource:
    """One answer that nobody holds back. What is seen of it is judged when it is over.

    Of one that is too long nothing is kept: part of an answer says nothing about all of it.
    """

    def __init__(self, source: Source, hearing: Hearing) -> None:
        self._source = source
        self._hearing = hearing
        self._gathered: Gathered | None = Gathered()
        self._size_bytes = 0
        self._is_over = False

    @property
    def replica(self) -> str | None:
        """Which replica answers, once one does."""
        return self._source.replica

    async def next(self) -> Sequence[UpstreamChunk]:
        """As they come."""
        chunks = await self._source.next()
        if not chunks:
            self._end()
        elif self._gathered is not None:
            self._gathered.see(chunks)
            self._size_bytes += len(_encoder.encode(chunks))
            if self._size_bytes > self._hearing.watched_bytes_max:
                self._gathered = None
        return chunks

    async def close(self) -> None:
        """What was said until now is all that will be."""
        self._end()
        await self._source.close()

    def _end(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._gathered is None:
            self._hearing.drop_answer(DecisionLoss.NO_ROOM)
        else:
            self._hearing.watch_answer(self._gathered.content, self._size_bytes)
