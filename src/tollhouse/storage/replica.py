"""Reports from a standby, so that the primary has neither their load nor their snapshots.

A report is read there once the standby has replayed what the primary had when it was asked for, so
that it is as fresh as on the primary. If that takes too long, or fails, the primary answers.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from tollhouse.base.tasks import Tasks
from tollhouse.observability import database_metrics
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable, StatementFailed

logger = logging.getLogger("tollhouse.storage")

T = TypeVar("T")

CATCH_UP_SECONDS_MAX: Final = 2.0
"""The longest that a report waits for the standby."""
RETRY_SECONDS: Final = 10.0
"""How long a standby that was late or away is left alone."""
POLL_SECONDS: Final = 0.02

_POSITION: Final = """
    SELECT pg_current_wal_flush_lsn()::text AS position, system_identifier
      FROM pg_control_system()
"""
_HAS_REPLAYED: Final = """
    SELECT pg_is_in_recovery() AND system_identifier = $2 AS is_standby,
           pg_last_wal_replay_lsn() >= $1::text::pg_lsn AS has_replayed
      FROM pg_control_system()
"""


class ReportReads:
    """Runs reads on the standby of `connect` once it has caught up, otherwise on the primary."""

    def __init__(
        self,
        primary: Database,
        connect: Callable[[], Awaitable[Database]] | None = None,
        *,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._primary = primary
        self._connect = connect
        self._retry_seconds = retry_seconds
        self._standby: Database | None = None
        self._opening = asyncio.Lock()
        self._closing = Tasks()
        self._retry_at = -math.inf
        self.reason = ""  # why the standby was not read the last time

    async def run(self, read: Callable[[Database], Awaitable[T]]) -> T:
        """Return what `read` returns. It must have no effects: it may run twice."""
        if self._connect is None:
            return await read(self._primary)
        if (standby := await self.standby()) is not None:
            try:
                found = await read(standby)
            except (DatabaseUnavailable, StatementFailed) as error:
                self._leave(error)  # the standby cancels reads that hinder its replay
            else:
                database_metrics.replica_read(by="replica")
                return found
        database_metrics.replica_read(by="primary")
        return await read(self._primary)

    async def standby(self) -> Database | None:
        """Return the standby once it has all that the primary has now, or None with a reason."""
        if self._connect is None or asyncio.get_running_loop().time() < self._retry_at:
            return None
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS_MAX):
                (primary,) = await self._primary.fetch_all(_POSITION)
                async with self._opening:
                    standby = self._standby = self._standby or await self._connect()
                is_standby, has_replayed = True, False
                while is_standby and not has_replayed:
                    (found,) = await standby.fetch_all(_HAS_REPLAYED, *primary.values())
                    is_standby, has_replayed = found.values()
                    await asyncio.sleep(0 if has_replayed else POLL_SECONDS)
        except (DatabaseUnavailable, StatementFailed, TimeoutError) as error:
            self._leave(error)
            return None
        if is_standby:
            self.reason = ""
            return standby
        # With several hosts in the URL, another one may be the standby now.
        self._closing.start("replica-close", standby.close())
        self._standby = None
        self._leave(ValueError("it is no standby of this database"))
        return None

    async def close(self) -> None:
        """Close the connections to all standbys that were read, after the reads that run."""
        if self._standby is not None:
            await self._standby.close()
        await self._closing.drain(deadline_seconds=math.inf)

    def _leave(self, why: Exception) -> None:
        self._retry_at = asyncio.get_running_loop().time() + self._retry_seconds
        is_new = not self.reason
        self.reason = str(why.__cause__ or why) or "it was away or late"
        if is_new:
            logger.warning("replica_not_read", extra={"reason": self.reason})
