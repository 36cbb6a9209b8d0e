"""Checks of PostgreSQL and of the connection to it."""

from typing import Final

from tollhouse import pools
from tollhouse.base.clock import SystemClock
from tollhouse.base.findings import Finding, failure, ok, warning
from tollhouse.cli.connecting import DIRECT, connected
from tollhouse.cli.session import Session
from tollhouse.settings import DatabaseSettings, Settings
from tollhouse.storage import pooling as storage_pooling
from tollhouse.storage import revisions, server_checks
from tollhouse.storage.database import Database
from tollhouse.storage.errors import SchemaMismatch
from tollhouse.storage.pooling import PoolingMode, UnfitPooler
from tollhouse.storage.server_health import read_health

VERSION_MIN: Final = 15


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


async def server(database: Database) -> list[Finding]:
    """Check the server itself: its role, standbys, durability, clock, snapshots and disk."""
    return server_checks.findings(await read_health(database, SystemClock()))


async def replica(operator: Session) -> Finding:
    """Check the standby for reports: whether it is read, and what it holds back."""
    check = "replica"
    if operator.settings.database.replica_url is None:
        return ok(check, "none configured; the primary answers all reads")
    reads = pools.report_reads(operator.database, operator.settings)
    try:
        if (standby := await reads.standby()) is None:
            remedy = "Until it is back, the primary answers. Correct database.replica_url."
            return warning(check, f"not read: {reads.reason}", remedy)
        rows = await standby.fetch_all(
            "SELECT current_setting('hot_standby_feedback')::boolean AS is_feeding_back"
        )
    finally:
        await reads.close()
    if rows[0]["is_feeding_back"]:
        remedy = "Set hot_standby_feedback = off there: reads on it keep dead rows on the primary."
        return warning(check, "read, but hot_standby_feedback is on", remedy)
    return ok(check, "it has all that the primary has")


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
    """Check the schema's revisions: workers start only on one that was expanded for them."""
    try:
        found = await revisions.current(database)
        revisions.refuse_unaccepted(found)
    except SchemaMismatch as error:
        message, _, remedy = str(error).partition(". ")
        return failure("schema", message, remedy)
    if found.contracted != found.expanded:
        waiting = f"revision {found.expanded}, contracted to {found.contracted}"
        return ok("schema", f"{waiting}; `tollhouse migrate --contract` ends the upgrade")
    return ok("schema", f"revision {found.expanded}")
