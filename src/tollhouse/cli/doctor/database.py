"""Checks of PostgreSQL and of the connection to it."""

from datetime import datetime
from typing import Final

from tollhouse.base.clock import Clock
from tollhouse.cli.connecting import DIRECT, connected
from tollhouse.cli.doctor.findings import Finding, failure, ok, warning
from tollhouse.settings import DatabaseSettings, Settings
from tollhouse.storage import pooling as storage_pooling
from tollhouse.storage import revisions
from tollhouse.storage.database import Database
from tollhouse.storage.errors import SchemaMismatch
from tollhouse.storage.pooling import PoolingMode, UnfitPooler

VERSION_MIN: Final = 15
CLOCK_DIFFERENCE_SECONDS_MAX: Final = 1.0


async def version(database: Database) -> Finding:
    """Check that PostgreSQL is new enough for the schema."""
    rows = await database.fetch_all("SELECT current_setting('server_version_num')::int AS number")
    return version_finding(rows[0]["number"] // 10_000)


def version_finding(major: int) -> Finding:
    """Return the finding for a major version."""
    if major < VERSION_MIN:
        remedy = f"Upgrade to PostgreSQL {VERSION_MIN} or newer."
        return failure("database version", f"PostgreSQL {major}", remedy)
    return ok("database version", f"PostgreSQL {major}")


async def clock_difference(database: Database, clock: Clock) -> Finding:
    """Compare the clocks, assuming that the reply took half of the round trip."""
    before = clock.now()
    rows = await database.fetch_all("SELECT clock_timestamp() AS now")
    return clock_finding(before, rows[0]["now"], clock.now())


def clock_finding(before: datetime, theirs: datetime, after: datetime) -> Finding:
    """Return a warning if the clocks differ.

    Keys expire by this machine's clock, leases and heartbeats by the database's.
    """
    difference_seconds = (theirs - (before + (after - before) / 2)).total_seconds()
    found = f"the database's clock differs by {difference_seconds:+.3f} s"
    if abs(difference_seconds) > CLOCK_DIFFERENCE_SECONDS_MAX:
        return warning("clock", found, "Synchronize both machines with the same time servers.")
    return ok("clock", found)


async def pooling(settings: DatabaseSettings) -> Finding:
    """Check what is between: without a pooler each connection keeps its own server process."""
    async with connected(settings) as first, connected(settings) as second:
        try:
            mode = await storage_pooling.examine(first, second)
        except UnfitPooler as error:
            found, _, remedy = str(error).partition(". ")
            return failure("pooling", found, f"{remedy} {DIRECT}")
    if mode is PoolingMode.TRANSACTION and settings.prepared_statements:
        return ok("pooling", f"{mode}, and keeps prepared statements")
    return ok("pooling", mode)


async def durability(database: Database) -> Finding:
    """Check that a crash cannot undo a commit, such as a revocation."""
    rows = await database.fetch_all(
        """
        SELECT current_setting('fsync') AS fsync,
               current_setting('synchronous_commit') AS synchronous_commit
        """
    )
    return durability_finding(rows[0]["fsync"], rows[0]["synchronous_commit"])


def durability_finding(fsync: str, synchronous_commit: str) -> Finding:
    """Return the finding for the server's two settings."""
    found = f"fsync is {fsync}, synchronous_commit is {synchronous_commit}"
    if fsync == "off":
        return failure("durability", found, "Set fsync = on: a crash can destroy everything.")
    if synchronous_commit == "off":
        remedy = "Set synchronous_commit = on: a crash can undo what was committed."
        return warning("durability", found, remedy)
    return ok("durability", found)


async def connections(database: Database, settings: Settings) -> Finding:
    """Check that the server accepts all connections of this host's workers."""
    rows = await database.fetch_all(
        """
        SELECT current_setting('max_connections')::int
             - current_setting('superuser_reserved_connections')::int AS available
        """
    )
    pools = settings.database.pool_size + settings.database.admin_pool_size
    return connections_finding(settings.server.workers * pools, rows[0]["available"])


def connections_finding(needed: int, available: int) -> Finding:
    """Return a warning if the workers need more connections than are available."""
    found = f"the workers of this host use up to {needed} of the server's {available} connections"
    if needed > available:
        remedy = (
            "Raise max_connections of PostgreSQL, or lower server.workers, database.pool_size or"
            " database.admin_pool_size. Each further host needs as many."
        )
        return warning("connections", found, remedy)
    return ok("connections", found)


async def revision(database: Database) -> Finding:
    """Check the schema's revisions: workers do not start outside of the accepted range."""
    found = await revisions.current(database)
    try:
        revisions.refuse_unaccepted(found)
    except SchemaMismatch as error:
        message, _, remedy = str(error).partition(". ")
        return failure("schema", message, remedy)
    if not found.has(revisions.head()):
        behind = f"revision {found.newest}, and this version adds up to {revisions.head()}"
        return warning("schema", behind, "Run `tollhouse migrate`: some features wait for it.")
    if found.expanded:
        waiting = f"revision {found.newest}, contracted to {found.contracted}"
        return ok("schema", f"{waiting}; `tollhouse migrate --contract` ends the upgrade")
    return ok("schema", f"revision {found.newest}")
