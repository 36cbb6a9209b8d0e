"""Reaching the database, and what to do when that fails: the driver says only why."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Final
from urllib.parse import urlsplit

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.settings import DatabaseSettings
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable

DATABASE_MISSING: Final = "3D000"
LOGIN_REFUSED: Final = frozenset({"28000", "28P01"})
# A startup parameter that is refused, a prepared statement that is somebody else's or is gone.
POOLER: Final = frozenset({"08P01", "42P05", "26000"})
DIRECT: Final = (
    "Let database.url name PostgreSQL itself, or a pooler in session mode: prepared statements "
    "and session settings do not survive a pooler in transaction mode."
)


class ConnectingFailed(GatewayError):
    """There is no connection that can be used; `remedy` says what to do."""

    kind = Kind.UNAVAILABLE
    code = "database_unreachable"

    def __init__(self, found: str, remedy: str) -> None:
        super().__init__(f"{found}. {remedy}")
        self.found = found
        self.remedy = remedy


class DatabaseMissing(ConnectingFailed):
    """The server is there, the database is not."""

    code = "database_missing"


class LoginRefused(ConnectingFailed):
    """The server does not let this role in."""

    code = "database_login_refused"


class PoolerInBetween(ConnectingFailed):
    """Something that is not PostgreSQL itself answered."""

    code = "database_pooler"


@asynccontextmanager
async def connected(database: DatabaseSettings) -> AsyncGenerator[Database, None]:
    """One connection for the time of the block."""
    with explained(database.url):
        opened = await Database.connect(
            database.url,
            pool_size=1,
            acquire_seconds=database.acquire_seconds,
            statement_seconds=database.statement_seconds,
        )
    try:
        yield opened
    finally:
        await opened.close()


@contextmanager
def explained(url: str) -> Generator[None, None, None]:
    """Turn a refused connection into advice. The address is never repeated with its password."""
    try:
        yield
    except BaseException as error:
        if (advice := _advice(error, url)) is not None:
            raise advice from error
        raise


def database_name(url: str) -> str:
    """As the address has it; empty when it leaves the choice to the server."""
    return urlsplit(url).path.removeprefix("/")


def _advice(error: BaseException, url: str) -> ConnectingFailed | None:
    reason = error.__cause__ if isinstance(error, DatabaseUnavailable) else error
    state, where = getattr(reason, "sqlstate", None), f"PostgreSQL at {_place(url)}"
    if state == DATABASE_MISSING:
        return DatabaseMissing(
            f"{where} has no database '{database_name(url)}'",
            "`tollhouse init` creates it; an existing deployment needs the right database.url.",
        )
    if state in LOGIN_REFUSED:
        return LoginRefused(
            f"{where} refused the login: {reason}",
            "Check role and password in database.url, and the server's pg_hba.conf.",
        )
    if state in POOLER:
        return PoolerInBetween(f"{where} answers like a connection pooler: {reason}", DIRECT)
    if isinstance(error, DatabaseUnavailable):
        return ConnectingFailed(
            f"{where} cannot be reached: {_words(reason)}",
            "Start it, or correct database.url (postgresql://ROLE:PASSWORD@HOST:5432/DATABASE).",
        )
    return None


def _place(url: str) -> str:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = None
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host or 'its default address'}:{port or 5432}"


def _words(reason: BaseException | None) -> str:
    """Timeouts come without a text."""
    return str(reason) or type(reason).__name__
