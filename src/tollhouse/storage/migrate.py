"""Migration of the schema: expand steps by `migrate`, contract steps by `contract`.

An empty database gets the texts of `schema/`, a later one the expand texts of the pending revisions
and then the current text of each function, all in one transaction: a run that fails or is killed
changes nothing. An advisory lock makes a second migration wait for the first. A table's lock is
waited for briefly, because statements of workers queue behind the wait; then all begins again.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast

import asyncpg
from alembic import command, op
from alembic.config import Config
from sqlalchemy import Connection
from sqlalchemy.engine.interfaces import AdaptedConnection
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from tollhouse.storage import errors, instances, revisions
from tollhouse.storage.connecting import Connector
from tollhouse.storage.driver_errors import TranslatedErrors

MIGRATION_LOCK: Final = 0x746F6C6C686F7573
_CONNECT_SECONDS: Final = 10.0
_MIGRATION_LOCK_TIMEOUT: Final = "30s"
TABLE_LOCK_SECONDS: Final = 1
ATTEMPTS: Final = 10
_PAUSE_SECONDS: Final = 1.0

_SCHEMA: Final = Path(__file__).parent / "schema"
_FUNCTIONS: Final = sorted((_SCHEMA / "functions").glob("*.sql"))
TEXTS: Final = [*sorted((_SCHEMA / "tables").glob("*.sql")), *_FUNCTIONS, _SCHEMA / "triggers.sql"]
"""Of an empty database's schema, in the order of execution."""
_VERSION_TABLES: Final = {"expand": "schema_expanded", "contract": "schema_contracted"}


class Progress(NamedTuple):
    """A text that is about to run."""

    name: str
    number: int
    total: int


Show = Callable[[Progress], None]
_T = TypeVar("_T")
_Work = Callable[[Connection, Show], list[str]]


async def migrate(url: str, *, show: Show = lambda _: None, attempts: int = ATTEMPTS) -> list[str]:
    """Apply the pending expand steps in one transaction; return the revisions that were applied.

    Raises `SchemaLocked` if a table's lock was not free in any of the attempts.
    """
    return await _in_one_transaction(url, _migrate, show, attempts)


async def contract(url: str, *, show: Show = lambda _: None) -> list[str]:
    """Apply the pending contract steps likewise; return the revisions that were applied.

    Raises `OlderWorkers` while a worker runs that does not know the newest revision.
    """
    return await _in_one_transaction(url, _contract, show, ATTEMPTS)


def run_step(*, expand: str | None, contract: str | None) -> None:
    """Run the present step's text, if there is one: the `upgrade` of a revision calls this."""
    given = cast("Config", op.get_context().config).attributes
    text = {"expand": expand, "contract": contract}[given["step"]]
    if text is not None:
        given["run"]([revisions.VERSIONS / text])


async def _in_one_transaction(url: str, work: _Work, show: Show, attempts: int) -> list[str]:
    """Run `work` with an SQLAlchemy connection, which Alembic needs, on a connection of asyncpg."""
    connect = Connector(url, seconds_max=_CONNECT_SECONDS).connect
    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, poolclass=NullPool)
    for _ in range(attempts):
        try:
            with TranslatedErrors():
                async with engine.begin() as connection:
                    await connection.run_sync(_lock)
                    return await connection.run_sync(work, show)
        except errors.LockTimedOut:
            await asyncio.sleep(_PAUSE_SECONDS)
    raise errors.SchemaLocked(attempts=attempts, seconds=TABLE_LOCK_SECONDS)


def _lock(connection: Connection) -> None:
    # SQLAlchemy begins the transaction; what may wait for a lock is run by the driver itself.
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_MIGRATION_LOCK_TIMEOUT}'")
    _execute(connection, f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{TABLE_LOCK_SECONDS}s'")


def _migrate(connection: Connection, show: Show) -> list[str]:
    found = _state(connection)
    revisions.refuse_newer(found.contracted)
    if found.expanded is None:
        _run(connection, show, TEXTS)
        for step in _VERSION_TABLES:
            command.stamp(_alembic(connection, step, show), "head")
        _record_texts(connection)
        return list(revisions.known())
    pending = [name for name in revisions.known() if name > found.expanded]
    _refuse_changed_texts(connection, found.expanded)
    if pending:
        command.upgrade(_alembic(connection, "expand", show), "head")
        _run(connection, show, _FUNCTIONS)
        _record_texts(connection)
    return pending


def _contract(connection: Connection, show: Show) -> list[str]:
    found = _state(connection)
    revisions.refuse_unaccepted(found)
    expanded, contracted = found.expanded or "", found.contracted or ""
    pending = [name for name in revisions.known() if contracted < name <= expanded]
    if pending:
        _refuse_changed_texts(connection, expanded)
        _refuse_older_workers(connection, pending[-1])
        command.upgrade(_alembic(connection, "contract", show), pending[-1])
    return pending


def _driven(connection: Connection, work: Callable[[Any], Awaitable[_T]]) -> _T:
    """Return what `work` returns for the connection of asyncpg."""
    adapted = cast("AdaptedConnection", connection.connection.dbapi_connection)
    return adapted.run_async(work)


def _execute(connection: Connection, statements: str) -> None:
    _driven(connection, methodcaller("execute", statements))


def _state(connection: Connection) -> revisions.SchemaState:
    return _driven(connection, lambda driver: revisions.state(driver.fetch))


def _alembic(connection: Connection, step: str, show: Show) -> Config:
    config = Config()
    config.set_main_option("script_location", str(revisions.VERSIONS.parent))
    config.set_main_option("path_separator", "os")
    run = partial(_run, connection, show)
    table = _VERSION_TABLES[step]
    config.attributes.update(connection=connection, version_table=table, step=step, run=run)
    return config


def _run(connection: Connection, show: Show, texts: Sequence[Path]) -> None:
    for number, text in enumerate(texts, start=1):
        show(Progress(name=text.stem, number=number, total=len(texts)))
        try:
            _execute(connection, text.read_text())
        except asyncpg.SyntaxOrAccessError as error:
            raise errors.MigrationFailed(text.name, str(error)) from error


def _digests() -> dict[str, str]:
    """Return the SHA-256 of every text of this version by its name."""
    texts = [*TEXTS, *revisions.VERSIONS.glob("*.sql")]
    return {text.name: hashlib.sha256(text.read_bytes()).hexdigest() for text in texts}


def _record_texts(connection: Connection) -> None:
    connection.exec_driver_sql("DELETE FROM schema_texts")
    connection.exec_driver_sql("INSERT INTO schema_texts VALUES ($1, $2)", [*_digests().items()])


def _refuse_changed_texts(connection: Connection, expanded: str) -> None:
    """Raise `SchemaMismatch` if a text is another one than the one that was applied.

    The texts of the schema change with each revision, so they are compared at the newest alone.
    """
    rows = connection.exec_driver_sql("SELECT name, digest FROM schema_texts")
    applied = {row.name: row.digest for row in rows}
    own = _digests()
    compared = applied.keys() | own.keys()
    if expanded != revisions.head():
        compared = {name for name in applied.keys() & own.keys() if name[:4].isdigit()}
    changed = sorted(name for name in compared if applied.get(name) != own.get(name))
    if changed:
        message = (
            f"The database has revision {expanded} from other texts than this version has: "
            f"{', '.join(changed)}. Nothing was changed. Run the version that migrated it, or "
            "begin with an empty database if no deployment depends on this one."
        )
        raise errors.SchemaMismatch(message)


def _refuse_older_workers(connection: Connection, newest: str) -> None:
    """Raise `OlderWorkers` if live workers do not know `newest`; let none register meanwhile."""
    _execute(connection, "LOCK TABLE instances IN SHARE ROW EXCLUSIVE MODE")
    arguments = newest, instances.DEAD_AFTER_SECONDS
    if count := connection.exec_driver_sql(instances.OLDER_WORKERS, arguments).scalar_one():
        raise errors.OlderWorkers(count=count, revision=newest)
