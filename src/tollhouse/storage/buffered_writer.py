"""Background writing of records, so that no request waits for them or fails because of them."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Generic, Protocol, TypeVar

from tollhouse.base.errors import ServiceUnavailable
from tollhouse.base.ids import RequestId
from tollhouse.storage.errors import ConstraintViolated, StatementFailed

WRITE_EVERY_SECONDS: Final = 0.5
SPLITS_MAX: Final = 64
"""How often one batch is split at most, to isolate its refused records."""


class RecordLoss(StrEnum):
    """Why a record was not written: full buffer, refused by the database, or stopped worker."""

    NO_ROOM = "no_room"
    REFUSED = "refused"
    STOPPED = "stopped"


class RecordOfRequest(Protocol):
    """A record that belongs to one request."""

    @property
    def request_id(self) -> RequestId:
        """The request's ID, which is logged if the record is refused."""
        ...


RecordT = TypeVar("RecordT", bound=RecordOfRequest)
_Sized = tuple[RecordT, int]


class BufferedWriter(ABC, Generic[RecordT]):
    """Buffers records in order and writes them in batches. One per worker and kind of record.

    The size of a record is what it takes of the buffer. While the database is unavailable, records
    stay in the buffer; a record leaves it only when it is written, refused, or dropped at shutdown.
    """

    def __init__(self, name: str, *, buffer_size: int, batch_size_max: int) -> None:
        self._name = name
        self._logger = logging.getLogger(f"tollhouse.{name}")
        self._buffer_size = buffer_size
        self._batch_size_max = batch_size_max
        self._waiting: deque[_Sized[RecordT]] = deque()
        self._waiting_size = 0
        self._one_at_a_time = asyncio.Lock()
        self._is_delayed = False

    @abstractmethod
    async def insert(self, records: Sequence[RecordT]) -> None:
        """Write these records in one statement, ignoring those that are there already."""

    @abstractmethod
    def dropped(self, records: Sequence[RecordT], loss: RecordLoss) -> None:
        """Count records that were not written."""

    @property
    def waiting_size(self) -> int:
        """The size of the buffered records."""
        return self._waiting_size

    def add(self, record: RecordT, *, size: int = 1) -> None:
        """Buffer a record, or drop it if the buffer is full. Never waits and never fails."""
        if self._waiting_size + size > self._buffer_size:
            self.dropped((record,), RecordLoss.NO_ROOM)
            return
        self._waiting_size += size
        self._waiting.append((record, size))

    async def write(self) -> None:
        """Write the buffered records; if the database is unavailable, keep them for next time."""
        async with self._one_at_a_time:
            try:
                while batch := self._next_batch():
                    await self._insert_or_split(batch)
                    self._remove(len(batch))
            except ServiceUnavailable as failure:
                self._log_delay(failure)
                return
            self._is_delayed = False

    async def flush(self, *, deadline_seconds: float) -> None:
        """Write the buffered records; drop those that are not written before the deadline."""
        try:
            async with asyncio.timeout(deadline_seconds):
                await self.write()
        except TimeoutError:
            pass
        if self._waiting:
            self._logger.warning("%s_lost", self._name, extra={"count": self._waiting_size})
            self.dropped([record for record, _ in self._waiting], RecordLoss.STOPPED)
            self._remove(len(self._waiting))

    def _next_batch(self) -> list[_Sized[RecordT]]:
        """Return the oldest records up to the batch size, but at least one if any is buffered."""
        batch: list[_Sized[RecordT]] = []
        batch_size = 0
        for record, size in self._waiting:
            batch_size += size
            if batch and batch_size > self._batch_size_max:
                break
            batch.append((record, size))
        return batch

    def _remove(self, count: int) -> None:
        for _ in range(count):
            self._waiting_size -= self._waiting.popleft()[1]

    async def _insert_or_split(self, batch: Sequence[_Sized[RecordT]]) -> None:
        """Write a batch; halve refused parts, up to `SPLITS_MAX` times, then drop them."""
        pieces, splits = [batch], 0
        while pieces:
            piece = pieces.pop()
            try:
                await self.insert([record for record, _ in piece])
            except (ConstraintViolated, StatementFailed) as refusal:
                if len(piece) == 1 or splits == SPLITS_MAX:
                    self._drop_refused(piece, refusal)
                    continue
                splits += 1
                middle = len(piece) // 2
                pieces += [piece[middle:], piece[:middle]]

    def _drop_refused(self, piece: Sequence[_Sized[RecordT]], refusal: Exception) -> None:
        size = sum(size for _, size in piece)
        self.dropped([record for record, _ in piece], RecordLoss.REFUSED)
        extra = {"count": size, "reason": str(refusal), "request_id": piece[0][0].request_id}
        self._logger.error("%s_refused", self._name, extra=extra)

    def _log_delay(self, failure: ServiceUnavailable) -> None:
        """Log once per outage, not at every attempt."""
        if not self._is_delayed:
            self._is_delayed = True
            extra = {"count": self._waiting_size, "reason": failure.message}
            self._logger.warning("%s_delayed", self._name, extra=extra)
