"""Migration of the schema.

All pending revisions run in one transaction, so a migration that fails or is killed leaves the old
schema. An advisory lock makes a second migration wait for the first.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from tollhouse.storage import revisions
from tollhouse.storage.connecting import Connector
from tollhouse.storage.database import TranslatedErrors

MIGRATION_LOCK: Final = 0x746F6C6C686F7573
_LOCK_TIMEOUT: Final = "30s"
_CONNECT_SECONDS: Final = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """A statement that is about to run."""

    revision: str
    statement_number: int
    statement_count: int


def _script() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    return ScriptDirectory.from_config(config)


async def migrate(
    url: str, *, show: Callable[[Progress], None] = lambda _: None, to: str | None = None
) -> list[str]:
    """Apply the pending revisions in one transaction; return those that were applied."""
    target = to or revisions.head()

    async def run(engine: AsyncEngine) -> list[str]:
        async with engine.begin() as connection:
            await connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
            await connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
            return await connection.run_sync(_upgrade, target, show)

    return await _with_engine(url, run)


async def _with_engine(url: str, work: Callable[[AsyncEngine], Awaitable[list[str]]]) -> list[str]:
    """Run `work` with an SQLAlchemy engine, which Alembic needs, on a connection of asyncpg."""
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=Connector(url, seconds_max=_CONNECT_SECONDS).connect,
        poolclass=NullPool,
    )
    try:
        with TranslatedErrors():
            return await work(engine)
    finally:
        await engine.dispose()


def _upgrade(connection: Connection, target: str, show: Callable[[Progress], None]) -> list[str]:
    script = _script()
    context = MigrationContext.configure(connection)
    pending = _pending(script, context.get_current_revision(), target)
    context._ensure_version_table()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - no public name
    for revision in pending:
        _apply(context, revision, show)
    return [revision.revision for revision in pending]


def _pending(script: ScriptDirectory, current: str | None, target: str) -> list[Script]:
    revisions.refuse_newer(current)
    return list(reversed(list(script.iterate_revisions(target, current or "base"))))


def _apply(context: MigrationContext, revision: Script, show: Callable[[Progress], None]) -> None:
    statements: tuple[str, ...] = revision.module.STATEMENTS
    operations = Operations(context)
    for number, statement in enumerate(statements, start=1):
        show(
            Progress(
                revision=revision.revision,
                statement_number=number,
                statement_count=len(statements),
            )
        )
        operations.get_bind().exec_driver_sql(statement)
    context.stamp(_script(), revision.revision)
