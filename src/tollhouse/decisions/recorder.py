"""Writing down what was decided, beside the requests: nothing here can delay or fail one."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final

from tollhouse.base.errors import ServiceUnavailable
from tollhouse.decisions import counting, store
from tollhouse.decisions.types import Examination
from tollhouse.observability import metrics
from tollhouse.observability.metrics import DecisionLoss
from tollhouse.storage.database import Database
from tollhouse.storage.errors import ConstraintViolated, StatementFailed

logger = logging.getLogger("tollhouse.decisions")

WRITE_EVERY_SECONDS: Final = 0.5
DECISIONS_MAX: Final = 5_000
"""That one statement writes; one content can have a thousand."""


class DecisionRecorder:
    """One per worker. What finds no room is dropped and counted."""

    def __init__(self, database: Database, *, waiting_decisions_max: int) -> None:
        self._database = database
        self._waiting_max = waiting_decisions_max
        self._waiting: deque[Examination] = deque()
        self._waiting_decisions = 0
        self._one_at_a_time = asyncio.Lock()
        self._is_delayed = False

    def note(self, examination: Examination) -> None:
        """Count it, and keep it until it is written; never waits and never fails."""
        counting.count(examination)
        decisions = len(examination.decisions)
        if self._waiting_decisions + decisions > self._waiting_max:
            metrics.decisions_dropped(decisions, DecisionLoss.NO_ROOM)
            return
        self._waiting_decisions += decisions
        self._waiting.append(examination)

    async def write(self) -> None:
        """Write what waits. While the database is away it stays, and the next turn tries again."""
        async with self._one_at_a_time:
            try:
                while batch := self._batch():
                    await self._insert(batch)
                    self._forget(len(batch))
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
        if self._waiting:
            logger.warning("decisions_lost", extra={"count": self._waiting_decisions})
            metrics.decisions_dropped(self._waiting_decisions, DecisionLoss.STOPPED)
            self._forget(len(self._waiting))

    def _batch(self) -> list[Examination]:
        """From the longest waiting on: as many as one statement may have, and at least one."""
        batch: list[Examination] = []
        decisions = 0
        for examination in self._waiting:
            decisions += len(examination.decisions)
            if batch and decisions > DECISIONS_MAX:
                break
            batch.append(examination)
        return batch

    def _forget(self, count: int) -> None:
        """They leave the queue only when they are written: a lost answer means once more."""
        for _ in range(count):
            self._waiting_decisions -= len(self._waiting.popleft().decisions)

    async def _insert(self, batch: Sequence[Examination]) -> None:
        """What the database refuses is cut in halves until it stands alone."""
        try:
            await store.insert(self._database, batch)
        except (ConstraintViolated, StatementFailed) as refusal:
            if len(batch) == 1:
                _tell_refusal(batch[0], refusal)
                return
            middle = len(batch) // 2
            await self._insert(batch[:middle])
            await self._insert(batch[middle:])

    def _tell_delay(self, failure: ServiceUnavailable) -> None:
        """Once, and not twice a second for as long as it lasts."""
        if not self._is_delayed:
            self._is_delayed = True
            extra = {"count": self._waiting_decisions, "reason": failure.message}
            logger.warning("decisions_delayed", extra=extra)


def _tell_refusal(examination: Examination, refusal: Exception) -> None:
    count = len(examination.decisions)
    metrics.decisions_dropped(count, DecisionLoss.REFUSED)
    extra = {"count": count, "reason": str(refusal), "request_id": examination.request_id}
    logger.error("decisions_refused", extra=extra)
