"""The state of the database server, as far as SQL and this machine can know it."""

import asyncio
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from tollhouse.base.clock import Clock
from tollhouse.storage import partitions, pooling
from tollhouse.storage.database import Database, Row, Transaction
from tollhouse.storage.errors import StatementFailed
from tollhouse.storage.partitions import DailyTable

STANDBYS_MAX: Final = 100
_REQUIRED: Final = re.compile(r"\s*(?:(?:FIRST|ANY)\s+)?([0-9]+)\s*\(", re.IGNORECASE)
_CANDIDATE_STATES: Final = frozenset({"sync", "quorum", "potential"})
_START_LINE: Final = 2
"""The line of postmaster.pid with the start of the server, in Unix seconds."""

_SERVER: Final = """
    SELECT pg_is_in_recovery() AS is_standby,
           NOT pg_is_in_recovery() AND current_setting('transaction_read_only')::boolean
             AS is_read_only,
           current_setting('synchronous_standby_names') AS synchronous_standby_names,
           current_setting('synchronous_commit') AS synchronous_commit,
           current_setting('fsync') AS fsync,
           extract(epoch FROM pg_postmaster_start_time())::float8 AS started_seconds,
           pg_database_size(current_database()) AS size_bytes,
           pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS sees_all_sessions,
           (SELECT setting FROM pg_settings WHERE name = 'data_directory') AS data_directory
"""
# The first eight digits of a WAL file's name are the timeline.
_HISTORY: Final = """
    SELECT system_identifier,
           ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer AS timeline
      FROM pg_control_system()
     WHERE NOT pg_is_in_recovery()
"""
_STANDBYS: Final = """
    SELECT coalesce(application_name, '') AS name, state, sync_state
      FROM pg_stat_replication
     WHERE state IS DISTINCT FROM 'backup'
     ORDER BY application_name, pid
     LIMIT $1
"""
# A transaction that wrote keeps rows alive by its own number. A vacuum keeps none by its snapshot.
_SNAPSHOTS: Final = """
    SELECT coalesce(max(seconds), 0)::float8 AS seconds,
           coalesce(max(transactions), 0) AS transactions,
           (array_agg(holder ORDER BY transactions DESC NULLS LAST, seconds DESC NULLS LAST))[1]
             AS holder
      FROM (
            SELECT extract(epoch FROM clock_timestamp() - xact_start) AS seconds,
                   greatest(age(backend_xid), age(backend_xmin)) AS transactions,
                   format('process %s (%s)', pid,
                          coalesce(nullif(application_name, ''), usename, backend_type)) AS holder
              FROM pg_stat_activity
             WHERE (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL)
               AND pid <> pg_backend_pid()
               AND backend_type <> 'autovacuum worker'
            UNION ALL
            SELECT NULL, greatest(age(xmin), age(catalog_xmin)),
                   format('replication slot %s', slot_name)
              FROM pg_replication_slots
             WHERE xmin IS NOT NULL OR catalog_xmin IS NOT NULL
            UNION ALL
            SELECT extract(epoch FROM clock_timestamp() - prepared), age(transaction),
                   format('prepared transaction %s', gid)
              FROM pg_prepared_xacts
           ) AS held
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Standby:
    """A server that replicates from this one. The states are None if the role may not see them."""

    name: str
    state: str | None
    sync_state: str | None

    @property
    def is_synchronous_candidate(self) -> bool:
        """Whether a commit may count this standby."""
        return self.state == "streaming" and self.sync_state in _CANDIDATE_STATES


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskSpace:
    """The file system of the server's data or of its WAL, whichever has less free space."""

    free_bytes: int
    total_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshots:
    """The oldest snapshot that keeps dead rows from being removed, and who holds it."""

    seconds: float
    transactions: int
    holder: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerHistory:
    """The database cluster of a server, and its timeline, to which each promotion adds 1."""

    system_identifier: int
    timeline: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerHealth:
    """What is known about a database server at one moment."""

    is_standby: bool
    is_read_only: bool
    standbys: tuple[Standby, ...]
    synchronous_standby_names: str
    synchronous_commit: str
    fsync: str
    clock_difference: timedelta
    size_bytes: int
    disk: DiskSpace | None
    snapshots: Snapshots
    sees_all_sessions: bool
    missing_settings: tuple[str, ...]
    days_ahead: dict[DailyTable, int]

    @property
    def required_standbys(self) -> int:
        """How many standbys a commit waits for, if it waits for any."""
        return required_standbys(self.synchronous_standby_names)

    @property
    def connected_candidates(self) -> int:
        """How many connected standbys a commit may count."""
        return sum(standby.is_synchronous_candidate for standby in self.standbys)


def required_standbys(names: str) -> int:
    """Return the number of standbys that `synchronous_standby_names` makes a commit wait for."""
    if not names.strip():
        return 0
    counted = _REQUIRED.match(names)
    return int(counted[1]) if counted else 1


def clock_difference(before: datetime, theirs: datetime, after: datetime) -> timedelta:
    """Return how far their clock is ahead, assuming that the reply took half the round trip."""
    return theirs - (before + (after - before) / 2)


async def read_health(database: Database, machine: Clock) -> ServerHealth:
    """Return the state of the server; `machine` is the clock of this machine."""
    missing_settings = await pooling.missing_settings(database)
    async with database.transaction() as tx:
        before = machine.now()
        theirs = await tx.fetch_value("SELECT clock_timestamp()")
        after = machine.now()
        server = await tx.fetch_one(_SERVER)
        assert server is not None, "a SELECT without FROM has a row"
        standbys = await tx.fetch_all(_STANDBYS, STANDBYS_MAX)
        snapshots = await tx.fetch_one(_SNAPSHOTS)
        assert snapshots is not None, "an aggregate has a row"
        days_ahead = await _days_ahead(tx)
    return ServerHealth(
        is_standby=server["is_standby"],
        is_read_only=server["is_read_only"],
        standbys=tuple(Standby(**row) for row in standbys),
        synchronous_standby_names=server["synchronous_standby_names"],
        synchronous_commit=server["synchronous_commit"],
        fsync=server["fsync"],
        clock_difference=clock_difference(before, theirs, after),
        size_bytes=server["size_bytes"],
        disk=await asyncio.to_thread(_local_disk, server),
        snapshots=Snapshots(**snapshots),
        sees_all_sessions=server["sees_all_sessions"],
        missing_settings=tuple(name for name, _ in missing_settings),
        days_ahead=days_ahead,
    )


async def read_history(database: Database) -> ServerHistory | None:
    """Return the history of a primary, or None for a standby or a service that hides it."""
    try:
        rows = await database.fetch_all(_HISTORY)
    except StatementFailed:
        return None
    return ServerHistory(**rows[0]) if rows else None


async def is_standby(database: Database) -> bool:
    """Return whether the server replicates from another, and so accepts no writes."""
    rows: Sequence[Row] = await database.fetch_all("SELECT pg_is_in_recovery() AS is_standby")
    return rows[0]["is_standby"]


async def _days_ahead(tx: Transaction) -> dict[DailyTable, int]:
    """Return the days ahead of each daily table, or nothing before the first migration."""
    return {
        table: ahead
        for table in DailyTable
        if (ahead := await partitions.days_ahead(tx, table)) is not None
    }


def _local_disk(server: Row) -> DiskSpace | None:
    """Return the space if the server's data directory is on this machine and readable.

    Its file postmaster.pid must have the start of this very server: another machine, or a tunnel to
    it, can have the same path.
    """
    if server["data_directory"] is None:
        return None
    folder = Path(server["data_directory"])
    try:
        lines = (folder / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        if abs(float(lines[_START_LINE]) - server["started_seconds"]) > 1:
            return None
        systems = [os.statvfs(folder), os.statvfs(folder / "pg_wal")]
    except (OSError, ValueError, IndexError):
        return None
    least = min(systems, key=lambda system: system.f_bavail / system.f_blocks)
    return DiskSpace(
        free_bytes=least.f_bavail * least.f_frsize, total_bytes=least.f_blocks * least.f_frsize
    )
