"""The connection pools of a worker, and the parts of them that one kind of work may use."""

from functools import partial
from typing import Final

from tollhouse.settings import Settings
from tollhouse.storage.database import Database
from tollhouse.storage.replica import DatabaseReplica

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


def part_for_reports(admin_database: Database, settings: Settings) -> Database:
    """Return the part of the Admin pool that reports may use, with their statement timeout."""
    return admin_database.share(
        connections_max=max(1, settings.database.admin_pool_size // REPORT_SHARE),
        statement_seconds=settings.database.report_statement_seconds,
    )


def replica_of(primary: Database, settings: Settings) -> DatabaseReplica | None:
    """Return the standby for reads that need not be fresh, if one is configured.

    It connects at its first look, so that a standby that is away keeps no worker from starting.
    """
    database = settings.database
    if database.replica_url is None:
        return None
    connect_replica = partial(
        Database.connect,
        database.replica_url,
        pool_size=database.admin_pool_size + 1,
        acquire_seconds=database.acquire_seconds,
        statement_seconds=database.report_statement_seconds,
        has_prepared_statements=database.prepared_statements,
        wants_standby=True,
    )
    return DatabaseReplica(
        primary,
        connect_replica,
        reads_max=database.admin_pool_size,
        lag_seconds_max=database.replica_lag_seconds,
    )
