"""Migration of the schema: expand steps by `migrate`, contract steps by `contract`.

All pending steps run in one transaction, so a migration that fails or is killed leaves the old
schema. An advisory lock makes a second migration wait for the first. A table's lock is waited for
briefly, because statements of workers queue behind the wait; then all begins again.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from tollhouse.storage import instances, revisions
from tollhouse.storage.connecting import Connector
from tollhouse.storage.driver_errors import TranslatedErrors
from tollhouse.storage.errors import OlderWorkers, SchemaLocked
from tollhouse.storage.revisions import Revision, SchemaState

MIGRATION_LOCK: Final = 0x746F6C6C686F7573
_CONNECT_SECONDS: Final = 10.0
_MIGRATION_LOCK_TIMEOUT: Final = "30s"
TABLE_LOCK_SECONDS: Final = 1
ATTEMPTS: Final = 10
_PAUSE_SECONDS: Final = 1.0
_LOCK_NOT_AVAILABLE: Final = "55P03"

_EXPANSIONS: Final = """
    CREATE TABLE IF NOT EXISTS schema_expansions (
        revision    text PRIMARY KEY,
        expanded_at timestamptz NOT NULL DEFAULT now()
    )
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """A statement that is about to run."""

    revision: str
    statement_number: int
    statement_count: int


Show = Callable[[Progress], None]
_Work = Callable[[Connection], list[str]]


def _script() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    return ScriptDirectory.from_config(config)


async def migrate(
    url: str,
    *,
    show: Show = lambda _: None,
    to: str | None = None,
    attempts: int = ATTEMPTS,
) -> list[str]:
    """Apply the pending expand steps in one transaction; return the revisions that were applied.

    An empty database gets the contract steps too, because no older release uses it. Raises
    `SchemaLocked` if a table's lock was not free in any of the attempts.
    """
    target = to or revisions.head()
    return await _in_one_transaction(
        url, lambda connection: _migrate(connection, target, show), attempts
    )


async def contract(url: str, *, show: Show = lambda _: None) -> list[str]:
    """Apply the pending contract steps in one transaction; return the revisions that were applied.

    Raises `OlderWorkers` while a worker runs that does not know the newest revision, and
    `SchemaLocked` as `migrate` does.
    """
    return await _in_one_transaction(url, lambda connection: _contract(connection, show), ATTEMPTS)


async def _in_one_transaction(url: str, work: _Work, attempts: int) -> list[str]:
    """Run `work` with an SQLAlchemy connection, which Alembic needs, on a connection of asyncpg."""
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=Connector(url, seconds_max=_CONNECT_SECONDS).connect,
        poolclass=NullPool,
    )
    try:
        with TranslatedErrors():
            return await _attempt(engine, work, attempts)
    finally:
        await engine.dispose()


async def _attempt(engine: AsyncEngine, work: _Work, attempts: int) -> list[str]:
    for _ in range(attempts):
        try:
            async with engine.begin() as connection:
                await connection.run_sync(_lock)
                return await connection.run_sync(work)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                raise
        await asyncio.sleep(_PAUSE_SECONDS)
    raise SchemaLocked(attempts=attempts, seconds=TABLE_LOCK_SECONDS)


def _lock(connection: Connection) -> None:
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_MIGRATION_LOCK_TIMEOUT}'")
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{TABLE_LOCK_SECONDS}s'")


def _migrate(connection: Connection, target: str, show: Show) -> list[str]:
    context = MigrationContext.configure(connection)
    found = _state(connection, context.get_current_revision())
    pending = [
        revision
        for revision in revisions.all_revisions()
        if revision.name <= target and not found.has(revision.name)
    ]
    context._ensure_version_table()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - no public name
    connection.exec_driver_sql(_EXPANSIONS)
    for revision in pending:
        if found.contracted is None or revision.name <= revisions.LAST_IN_ONE_STEP:
            _run(connection, revision.name, (*revision.expand, *revision.contract), show)
            context.stamp(_script(), revision.name)
        else:
            _run(connection, revision.name, revision.expand, show)
            connection.exec_driver_sql(
                "INSERT INTO schema_expansions (revision) VALUES ($1)", (revision.name,)
            )
    return [revision.name for revision in pending]


def _contract(connection: Connection, show: Show) -> list[str]:
    context = MigrationContext.configure(connection)
    found = _state(connection, context.get_current_revision())
    revisions.refuse_unaccepted(found)
    pending = [
        revision for revision in revisions.all_revisions() if revision.name in found.expanded
    ]
    if not pending:
        return []
    _refuse_older_workers(connection, pending[-1])
    for revision in pending:
        _run(connection, revision.name, revision.contract, show)
        connection.exec_driver_sql(
            "DELETE FROM schema_expansions WHERE revision = $1", (revision.name,)
        )
    context.stamp(_script(), pending[-1].name)
    return [revision.name for revision in pending]


def _state(connection: Connection, contracted: str | None) -> SchemaState:
    revisions.refuse_newer(contracted)
    expanded = frozenset[str]()
    if connection.exec_driver_sql("SELECT to_regclass('schema_expansions')").scalar() is not None:
        rows = connection.exec_driver_sql("SELECT revision FROM schema_expansions")
        expanded = frozenset(row.revision for row in rows)
    return SchemaState(contracted=contracted, expanded=expanded)


def _refuse_older_workers(connection: Connection, newest: Revision) -> None:
    """Raise `OlderWorkers` if live workers do not know `newest`; let none register meanwhile."""
    connection.exec_driver_sql("LOCK TABLE instances IN SHARE ROW EXCLUSIVE MODE")
    count: int | None = connection.exec_driver_sql(
        instances.OLDER_WORKERS, (newest.name, instances.DEAD_AFTER_SECONDS)
    ).scalar()
    if count:
        raise OlderWorkers(count=count, revision=newest.name)


def _run(connection: Connection, revision: str, statements: tuple[str, ...], show: Show) -> None:
    for number, statement in enumerate(statements, start=1):
        show(Progress(revision=revision, statement_number=number, statement_count=len(statements)))
        connection.exec_driver_sql(statement)
