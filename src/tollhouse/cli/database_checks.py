"""Checks of PostgreSQL itself and of the way to it."""

from datetime import datetime
from typing import Final

from tollhouse.base.clock import Clock
from tollhouse.cli.connecting import DIRECT, connected
from tollhouse.cli.findings import Finding, failure, ok, warning
from tollhouse.settings import DatabaseSettings, Settings
from tollhouse.storage import revisions
from tollhouse.storage.database import Database
from tollhouse.storage.errors import SchemaMismatch

VERSION_MIN: Final = 15
CLOCK_DIFFERENCE_SECONDS_MAX: Final = 1.0

_BACKEND: Final = "SELECT pg_backend_pid() AS backend"


async def version(database: Database) -> Finding:
    """Older ones lack what the schema uses."""
    rows = await database.fetch_all("SELECT current_setting('server_version_num')::int AS number")
    return judge_version(rows[0]["number"] // 10_000)


def judge_version(major: int) -> Finding:
    """By the major version alone."""
    if major < VERSION_MIN:
        remedy = f"Move to PostgreSQL {VERSION_MIN} or newer."
        return failure("database version", f"PostgreSQL {major}", remedy)
    return ok("database version", f"PostgreSQL {major}")


async def clock_difference(database: Database, clock: Clock) -> Finding:
    """Half of the round trip is taken for the way back."""
    before = clock.now()
    rows = await database.fetch_all("SELECT clock_timestamp() AS now")
    return judge_clocks(before, rows[0]["now"], clock.now())


def judge_clocks(before: datetime, theirs: datetime, after: datetime) -> Finding:
    """Expiry is judged by this machine's clock, leases and heartbeats by the database's."""
    difference_seconds = (theirs - (before + (after - before) / 2)).total_seconds()
    found = f"the database's clock differs by {difference_seconds:+.3f} s"
    if abs(difference_seconds) > CLOCK_DIFFERENCE_SECONDS_MAX:
        return warning("clock", found, "Let both machines follow the same time servers.")
    return ok("clock", found)


async def pooling(settings: DatabaseSettings) -> Finding:
    """Two of our connections must be two of the server's, and stay the same ones."""
    async with connected(settings) as first, connected(settings) as second:
        mine = await _backend(first)
        if mine == await _backend(second):
            return failure("pooling", "two connections share one server process", DIRECT)
        # While the second one is in a transaction, a pooler would give us another process.
        async with second.transaction() as tx:
            await tx.fetch_value(_BACKEND)
            if await _backend(first) != mine:
                return failure("pooling", "one connection changes its server process", DIRECT)
        rows = await first.fetch_all("SELECT current_setting('enable_seqscan') AS kept")
    if rows[0]["kept"] != "off":
        return failure("pooling", "session settings are dropped on the way", DIRECT)
    return ok("pooling", "each connection has a server process of its own")


async def _backend(database: Database) -> int:
    rows = await database.fetch_all(_BACKEND)
    return rows[0]["backend"]


async def durability(database: Database) -> Finding:
    """A revocation that a crash undoes was none."""
    rows = await database.fetch_all(
        """
        SELECT current_setting('fsync') AS fsync,
               current_setting('synchronous_commit') AS synchronous_commit
        """
    )
    return judge_durability(rows[0]["fsync"], rows[0]["synchronous_commit"])


def judge_durability(fsync: str, synchronous_commit: str) -> Finding:
    """By the server's two settings."""
    found = f"fsync is {fsync}, synchronous_commit is {synchronous_commit}"
    if fsync == "off":
        return failure("durability", found, "Set fsync = on: a crash can destroy everything.")
    if synchronous_commit == "off":
        remedy = "Set synchronous_commit = on: a crash can undo what was committed."
        return warning("durability", found, remedy)
    return ok("durability", found)


async def connections(database: Database, settings: Settings) -> Finding:
    """All pools of a host must fit into what the server takes, or busy workers fail."""
    rows = await database.fetch_all(
        """
        SELECT current_setting('max_connections')::int
             - current_setting('superuser_reserved_connections')::int AS available
        """
    )
    pools = settings.database.pool_size + settings.database.admin_pool_size
    return judge_connections(settings.server.workers * pools, rows[0]["available"])


def judge_connections(needed: int, available: int) -> Finding:
    """By what this host's workers may open together."""
    found = f"the workers of this host use up to {needed} of the server's {available} connections"
    if needed > available:
        remedy = (
            "Raise max_connections of PostgreSQL, or lower server.workers, database.pool_size or"
            " database.admin_pool_size. Further hosts need as many again."
        )
        return warning("connections", found, remedy)
    return ok("connections", found)


async def revision(database: Database) -> Finding:
    """Workers refuse to start on any other schema."""
    try:
        await revisions.refuse_other_schema(database)
    except SchemaMismatch as error:
        found, _, remedy = str(error).partition(". ")
        return failure("schema", found, remedy)
    return ok("schema", f"revision {revisions.known()[-1]}")
