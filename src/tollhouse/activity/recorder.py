"""Writing down what became of requests, beside them: nothing here can delay or fail one."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from tollhouse.activity import spans, store
from tollhouse.activity.types import RequestRecord
from tollhouse.base.errors import ServiceUnavailable
from tollhouse.observability import metrics
from tollhouse.observability.metrics import ActivityLoss
from tollhouse.observability.spans import Span
from tollhouse.storage.database import Database
from tollhouse.storage.errors import ConstraintViolated, StatementFailed

logger = logging.getLogger("tollhouse.activity")

WRITE_EVERY_SECONDS: Final = 0.5
BATCH_MAX: Final = 300
SPLITS_MAX: Final = 64
"""What is spent on finding the records of a batch that the database refuses."""
SPANS_AT_ONCE: Final = 100
"""A millisecond or two, in which requests wait."""


class Recorder:
    """One per worker. Records wait in order; one that finds no room is dropped and counted."""

    def __init__(
        self,
        database: Database,
        *,
        waiting_records_max: int,
        export: Callable[[Span], None] | None = None,
    ) -> None:
        self._database = database
        self._waiting_max = waiting_records_max
        self._export = export
        self._waiting: deque[RequestRecord] = deque()
        self._untraced: deque[RequestRecord] = deque(maxlen=waiting_records_max)
        self._one_at_a_time = asyncio.Lock()
        self._is_delayed = False

    def note(self, record: RequestRecord) -> None:
        """Keep a record until it is written; never waits and never fails."""
        if self._export is not None:
            self._untraced.append(record)
        if len(self._waiting) < self._waiting_max:
            self._waiting.append(record)
        else:
            metrics.activity_dropped(1, ActivityLoss.NO_ROOM)

    async def write(self) -> None:
        """Write what waits. While the database is away it stays, and the next turn tries again."""
        async with self._one_at_a_time:
            await self._trace()
            try:
                while self._waiting:
                    await self._write_first()
            except ServiceUnavailable as failure:
                self._tell_delay(failure)
                return
            self._is_delayed = False

    async def flush(self, *, deadline_seconds: float) -> None:
        """The last turn, when no request is left; what cannot be written by then is lost."""
        try:
            async with asyncio.timeout(deadline_seconds):
                await self.write()
        except TimeoutError:
            pass
        if lost := len(self._waiting):
            logger.warning("activity_lost", extra={"count": lost})
            metrics.activity_dropped(lost, ActivityLoss.STOPPED)
            self._waiting.clear()

    async def _trace(self) -> None:
        if self._export is None:
            return
        while self._untraced:
            for _ in range(min(len(self._untraced), SPANS_AT_ONCE)):
                span = spans.span_of(self._untraced.popleft())
                if span is not None:
                    self._export(span)
            await asyncio.sleep(0)

    async def _write_first(self) -> None:
        """They leave the queue only when they are written: a lost answer means once more."""
        batch = list(islice(self._waiting, BATCH_MAX))
        await self._insert(batch)
        for _ in batch:
            self._waiting.popleft()

    async def _insert(self, batch: Sequence[RequestRecord]) -> None:
        """What the database refuses is cut in halves until it stands alone."""
        pieces, splits = [batch], 0
        while pieces:
            piece = pieces.pop()
            refusal = await self._refusal(piece)
            if refusal is None:
                continue
            if len(piece) == 1 or splits == SPLITS_MAX:
                _tell_refusal(piece, refusal)
            else:
                splits += 1
                middle = len(piece) // 2
                pieces += [piece[middle:], piece[:middle]]

    async def _refusal(self, piece: Sequence[RequestRecord]) -> Exception | None:
        """Nothing, if they are written."""
        try:
            written = await store.insert(self._database, piece)
        except (ConstraintViolated, StatementFailed) as refusal:
            return refusal
        metrics.activity_written(written)
        return None

    def _tell_delay(self, failure: ServiceUnavailable) -> None:
        """Once, and not twice a second for as long as it lasts."""
        if not self._is_delayed:
            self._is_delayed = True
            extra = {"count": len(self._waiting), "reason": failure.message}
            logger.warning("activity_delayed", extra=extra)


def _tell_refusal(piece: Sequence[RequestRecord], refusal: Exception) -> None:
    metrics.activity_dropped(len(piece), ActivityLoss.REFUSED)
    extra = {"count": len(piece), "reason": str(refusal), "request_id": piece[0].request_id}
    logger.error("activity_refused", extra=extra)
