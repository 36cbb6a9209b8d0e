"""The connection pools of a worker."""

from tollhouse.settings import Settings
from tollhouse.storage.database import Database


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
