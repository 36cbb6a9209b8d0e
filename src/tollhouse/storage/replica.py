"""Reads that need not be fresh, from a standby: reports, searches, verification, exports.

The lag is measured with the clock of this process: the primary's WAL position is sampled, and the
standby is as late as the newest sample that it has replayed is old. So it is an upper bound, does
not depend on the clocks of the servers, and grows if the standby is cut off from the primary.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Final, TypeVar

from tollhouse.base.errors import GatewayError
from tollhouse.base.tasks import Tasks
from tollhouse.observability import database_metrics
from tollhouse.observability.database_metrics import ReadServer
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable, StatementFailed

logger = logging.getLogger("tollhouse.storage")

T = TypeVar("T")

REPLICA_LOOK_EVERY_SECONDS: Final = 1.0
LOOK_SECONDS_MAX: Final = 2.0
"""A standby that does not tell its position within this time is away."""
POLL_SECONDS: Final = 0.05
FAILED: Final = "failed"
"""Why the primary answered a read that failed on the standby."""
SAMPLES_MAX: Final = 600

_PRIMARY: Final = """
    SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::int8 AS position,
           (SELECT system_identifier FROM pg_control_system()) AS system
"""
_STANDBY: Final = """
    SELECT pg_is_in_recovery() AS is_standby,
           pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::int8 AS position,
           (SELECT system_identifier FROM pg_control_system()) AS system
"""


class ReplicaState(StrEnum):
    """Whether the standby can be read. All but `READY` mean that the primary is read instead."""

    READY = "ready"
    LATE = "late"
    AWAY = "away"


class ReplicaUnfit(Exception):
    """The server of `database.replica_url` is not a standby of this database."""


class DatabaseReplica:
    """A standby, and how late it is. `look` must be called regularly."""

    def __init__(
        self,
        primary: Database,
        connect: Callable[[], Awaitable[Database]],
        *,
        reads_max: int,
        lag_seconds_max: float,
    ) -> None:
        self._primary = primary
        self._connect = connect
        self._reads_max = reads_max
        self._lag_seconds_max = lag_seconds_max
        self._samples: deque[tuple[float, int]] = deque(maxlen=SAMPLES_MAX)
        self._now = asyncio.get_running_loop().time
        self._replayed_until = -math.inf
        self._looking = asyncio.Lock()
        self._closing = Tasks()
        self._standby: Database | None = None
        self._reads: Database | None = None
        database_metrics.replica_reads_end_as((*ReplicaState, FAILED))
        self.state = ReplicaState.AWAY
        self.lag_seconds = math.inf
        self.reason = "it was not asked yet"

    @property
    def database(self) -> Database | None:
        """The part of the standby's pool for reads, or None if the primary must be read instead.

        The rest of the pool is for `look`, so that many reads do not make the standby seem away.
        """
        return self._reads if self.state is ReplicaState.READY else None

    async def look(self) -> None:
        """Measure the lag, and decide whether the standby can be read."""
        async with self._looking:
            try:
                standby = self._standby or await self._open()
                async with asyncio.timeout(LOOK_SECONDS_MAX):
                    lag_seconds = await self._measure(standby)
            except (DatabaseUnavailable, StatementFailed, ReplicaUnfit, TimeoutError) as error:
                self._change(ReplicaState.AWAY, math.inf, _words(error))
                if isinstance(error, ReplicaUnfit):
                    # With several hosts in the URL, another one may be the standby now. Reads
                    # that run on this one must not delay the next look.
                    self._forget()
                return
            if lag_seconds <= self._lag_seconds_max:
                self._change(ReplicaState.READY, lag_seconds, "")
                return
            is_known = lag_seconds < math.inf
            reason = f"it is {lag_seconds:.0f} s behind" if is_known else "its lag is unknown yet"
            self._change(ReplicaState.LATE, lag_seconds, reason)

    async def settle(self) -> None:
        """Look until the lag is known, or for as long as the standby may be late."""
        until = self._now() + self._lag_seconds_max
        await self.look()
        while self.state is ReplicaState.LATE and self._now() < until:
            await asyncio.sleep(POLL_SECONDS)
            await self.look()

    async def reach_primary(self) -> None:
        """Wait until the standby has all that the primary has now, or is not ready any more."""
        begun = self._now()
        while self.state is ReplicaState.READY and self._replayed_until < begun:
            await asyncio.sleep(POLL_SECONDS)
            await self.look()

    async def close(self) -> None:
        """Close the connections to all standbys that were read, after the reads that run."""
        self._forget()
        await self._closing.drain(deadline_seconds=math.inf)

    def _forget(self) -> None:
        """Let nothing further use the pool, and close it in the background. `close` waits."""
        standby, self._standby, self._reads = self._standby, None, None
        if standby is not None:
            self._closing.start("replica-close", standby.close())

    async def _open(self) -> Database:
        self._standby = await self._connect()
        self._reads = self._standby.share(connections_max=self._reads_max)
        return self._standby

    async def _measure(self, standby: Database) -> float:
        """Return the lag in seconds, infinite until the standby has replayed a sample."""
        system = await self._sample()
        (found,) = await standby.fetch_all(_STANDBY)
        if not found["is_standby"]:
            message = "it is a primary, not a standby"
            raise ReplicaUnfit(message)
        if system not in (None, found["system"]):
            message = "it is a standby of another server"
            raise ReplicaUnfit(message)
        replayed = (at for at, sampled in self._samples if sampled <= found["position"])
        self._replayed_until = max(replayed, default=-math.inf)
        return self._now() - self._replayed_until

    async def _sample(self) -> int | None:
        """Sample the primary; return its system identifier, or None while it is unavailable."""
        sampled_at = self._now()
        try:
            (primary,) = await self._primary.fetch_all(_PRIMARY)
        except (DatabaseUnavailable, StatementFailed):
            return None
        self._samples.append((sampled_at, primary["position"]))
        return primary["system"]

    def _change(self, state: ReplicaState, lag_seconds: float, reason: str) -> None:
        if state is not self.state or (reason != self.reason and state is ReplicaState.AWAY):
            if state is ReplicaState.READY:
                logger.info("replica_read")
            else:
                logger.warning("replica_not_read", extra={"reason": reason})
        self.state, self.lag_seconds, self.reason = state, lag_seconds, reason
        database_metrics.replica_lag(lag_seconds)


class ReplicaReads:
    """Runs reads on the standby while it is ready, otherwise on the primary."""

    def __init__(self, primary: Database, replica: DatabaseReplica | None = None) -> None:
        self._primary = primary
        self._replica = replica
        self.answered_by = ReadServer.PRIMARY
        """The server that answered the last read."""

    async def run(
        self, read: Callable[[Database], Awaitable[T]], *, is_complete: bool = False
    ) -> T:
        """Return what `read` returns. It must have no effects: it may run twice.

        A read that fails on the standby is repeated on the primary, since the standby may cancel
        it or not know a new row yet. With `is_complete`, the standby first replays all that the
        primary has committed.
        """
        if self._replica is None:
            return await read(self._primary)
        self.answered_by = ReadServer.PRIMARY
        if is_complete:
            await self._replica.reach_primary()
        standby = self._replica.database
        if standby is None:
            database_metrics.replica_read(ReadServer.PRIMARY, self._replica.state)
            return await read(self._primary)
        try:
            found = await read(standby)
        except (GatewayError, StatementFailed):
            database_metrics.replica_read(ReadServer.PRIMARY, FAILED)
            return await read(self._primary)
        self.answered_by = ReadServer.REPLICA
        database_metrics.replica_read(ReadServer.REPLICA, self._replica.state)
        return found


def _words(error: BaseException) -> str:
    """Return the reason of a failure, that of the driver if there is one."""
    if isinstance(error, TimeoutError):
        return f"it does not answer within {LOOK_SECONDS_MAX:g} s"
    cause = error.__cause__ or error
    return str(cause) or type(cause).__name__
