"""Gaps in the records: when requests began whose records a worker dropped."""

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from tollhouse.activity import store
from tollhouse.activity.types import RecordGap
from tollhouse.base.errors import ServiceUnavailable
from tollhouse.storage.database import Database
from tollhouse.storage.errors import StatementFailed

logger: Final = logging.getLogger("tollhouse.activity")


class GapRecorder:
    """Keeps what was dropped until the database stores it. One per worker."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._gap: RecordGap | None = None

    def add(self, instants: Sequence[datetime]) -> None:
        """Widen the gap by dropped requests, which began at these instants."""
        if not instants:
            return
        known = self._gap
        self._gap = RecordGap(
            first_at=min(instants) if known is None else min(known.first_at, *instants),
            last_at=max(instants) if known is None else max(known.last_at, *instants),
            records=len(instants) + (0 if known is None else known.records),
        )

    async def write(self) -> None:
        """Store the gap and log it; keep it for next time if that is not possible yet."""
        gap = self._gap
        if gap is None:
            return
        self._gap = None
        try:
            await store.add_gap(self._database, gap)
        except (ServiceUnavailable, StatementFailed):
            # Unavailable, or not migrated yet.
            self._gap = gap if self._gap is None else _joined(gap, self._gap)
            return
        extra = {
            "count": gap.records,
            "first_at": gap.first_at.isoformat(),
            "last_at": gap.last_at.isoformat(),
        }
        logger.warning("activity_gap", extra=extra)


def _joined(first: RecordGap, second: RecordGap) -> RecordGap:
    return RecordGap(
        first_at=min(first.first_at, second.first_at),
        last_at=max(first.last_at, second.last_at),
        records=first.records + second.records,
    )
