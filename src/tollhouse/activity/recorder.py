"""Records of requests, written to the database and exported as spans in the background."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from tollhouse.activity import spans, store
from tollhouse.activity.gaps import GapRecorder
from tollhouse.activity.types import RequestRecord
from tollhouse.observability import metrics, model_metrics
from tollhouse.observability.metrics import ActivityLoss
from tollhouse.observability.span import Span
from tollhouse.storage.buffered_writer import BufferedWriter, RecordLoss
from tollhouse.storage.database import Database

BATCH_MAX: Final = 300
SPANS_AT_ONCE: Final = 100
"""Exporting this many spans blocks the event loop for one or two milliseconds."""


class RequestRecorder(BufferedWriter[RequestRecord]):
    """Writes records and exports their spans in the background. One per worker."""

    def __init__(
        self,
        database: Database,
        *,
        waiting_records_max: int,
        export: Callable[[Span], None] | None = None,
    ) -> None:
        super().__init__("activity", buffer_size=waiting_records_max, batch_size_max=BATCH_MAX)
        self._database = database
        self._export = export
        self.gaps = GapRecorder(database)
        self._untraced: deque[RequestRecord] = deque(maxlen=waiting_records_max)
        model_metrics.read_queue_length("activity", lambda: self.waiting_size)

    def record(self, record: RequestRecord) -> None:
        """Buffer a record until it is written and exported. Never waits and never fails."""
        context = record.trace_context
        if self._export is not None and (context is None or context.is_sampled):
            self._untraced.append(record)
        self.add(record)

    async def write(self) -> None:
        """Export the spans, then write the records and the gap in them, if there is one."""
        await self._trace()
        await super().write()
        await self.gaps.write()

    async def insert(self, records: Sequence[RequestRecord]) -> None:
        """Write records, add them to the sums of their hours, and count what they used."""
        metrics.activity_written(await store.insert(self._database, records))
        # Only now: a record is written once, and the database refuses impossible values.
        for record in records:
            _count(record)

    def dropped(self, records: Sequence[RequestRecord], loss: RecordLoss) -> None:
        """Count records that were not written."""
        metrics.activity_dropped(len(records), ActivityLoss(loss))
        self.gaps.add([record.started_at for record in records])

    async def _trace(self) -> None:
        if self._export is None:
            return
        while self._untraced:
            for _ in range(min(len(self._untraced), SPANS_AT_ONCE)):
                span = spans.span_of(self._untraced.popleft())
                if span is not None:
                    self._export(span)
            await asyncio.sleep(0)


def _count(record: RequestRecord) -> None:
    """Count a request that reached a backend by its model, which is one of the catalog."""
    model = record.model
    if model is None or record.backend is None:
        return
    if record.is_stream and record.first_byte_ms is not None:
        model_metrics.first_token_sent(model, seconds=record.first_byte_ms / 1_000)
    if record.cost_pico_usd is None:
        return
    model_metrics.cost_settled(model, record.cost_pico_usd)
    model_metrics.tokens_used(model, "input", record.input_tokens or 0)
    model_metrics.tokens_used(model, "cached_input", record.cached_input_tokens or 0)
    model_metrics.tokens_used(model, "output", record.output_tokens or 0)
