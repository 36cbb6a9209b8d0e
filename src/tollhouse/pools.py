"""The connection pools of a worker, and the parts of them that one kind of work may use."""

from functools import partial
from typing import Final

from tollhouse.settings import Settings
from tollhouse.storage.database import Database
from tollhouse.storage.replica import ReportReads

BACKGROUND_SHARE: Final = 4
"""Background work uses at most this part of the inference pool."""
POLICY_SHARE: Final = 4
"""Reading policies uses at most this part of the inference pool; admission has the rest."""
REPORT_SHARE: Final = 2
"""Reports use at most this part of the Admin pool, so that changes do not wait for them."""


async def connect_admin(settings: Settings) -> Database:
    """Open the connection pool of Admin operations, reports and maintenance."""
    return await Database.connect(
        settings.database.url,
        pool_size=settings.database.admin_pool_size,
        acquire_seconds=settings.database.acquire_seconds,
        statement_seconds=settings.database.admin_statement_seconds,
        has_prepared_statements=settings.database.prepared_statements,
    )


async def connect(settings: Settings) -> Database:
    """Open the connection pool of inference."""
    return await Database.connect(
        settings.database.url,
        pool_size=settings.database.pool_size,
        acquire_seconds=settings.database.acquire_seconds,
        statement_seconds=settings.database.statement_seconds,
        has_prepared_statements=settings.database.prepared_statements,
    )


def part_for_background(database: Database, settings: Settings) -> Database:
    """Return the part of the inference pool that background work may use."""
    size = settings.database.pool_size
    return database.share(connections_max=max(1, size // BACKGROUND_SHARE))


def part_for_policies(database: Database, settings: Settings) -> Database:
    """Return the part of the inference pool that the reading of policies may use."""
    return database.share(connections_max=max(1, settings.database.pool_size // POLICY_SHARE))


def report_reads(admin_database: Database, settings: Settings) -> ReportReads:
    """Return the reads of reports: on the standby for them, or on a part of the Admin pool.

    It connects to the standby with the first report, so that one that is away keeps no worker from
    starting.
    """
    database = settings.database
    primary = admin_database.share(
        connections_max=max(1, database.admin_pool_size // REPORT_SHARE),
        statement_seconds=database.report_statement_seconds,
    )
    if database.replica_url is None:
        return ReportReads(primary)
    connect_standby = partial(
        Database.connect,
        database.replica_url,
        pool_size=database.admin_pool_size,
        acquire_seconds=database.acquire_seconds,
        statement_seconds=database.report_statement_seconds,
        has_prepared_statements=database.prepared_statements,
        wants_standby=True,
    )
    return ReportReads(primary, connect_standby)
