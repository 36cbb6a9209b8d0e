"""Connecting to the database, with advice if the connection fails."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, TypeVar
from urllib.parse import urlsplit

import click

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.settings import DatabaseSettings
from tollhouse.storage.connecting import NoUsableHost, hosts_of
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable

T = TypeVar("T")

LOOK_EVERY_SECONDS: Final = 1.0
DATABASE_MISSING: Final = "3D000"
LOGIN_REFUSED: Final = frozenset({"28000", "28P01"})
# A refused startup parameter, a duplicate prepared statement, a missing prepared statement.
POOLER: Final = frozenset({"08P01", "42P05", "26000"})
DIRECT: Final = (
    "Set database.url to PostgreSQL itself, or configure the pooler as the guide on connection "
    "pooling says: ignore_startup_parameters, and settings of the role. A PgBouncer before 1.21 "
    "in transaction mode needs database.prepared_statements = false."
)


class ConnectingFailed(GatewayError):
    """The database cannot be used. `found` says what happened, `remedy` what to do."""

    kind = Kind.UNAVAILABLE
    code = "database_unreachable"
    template = "{self.found}. {self.remedy}"
    found: str
    remedy: str


class DatabaseMissing(ConnectingFailed):
    """The server has no such database."""

    code = "database_missing"


class LoginRefused(ConnectingFailed):
    """The server refused the role or its password."""

    code = "database_login_refused"


class PoolerInBetween(ConnectingFailed):
    """A pooler in transaction mode is between Tollhouse and PostgreSQL."""

    code = "database_pooler"


class CertificateRefused(ConnectingFailed):
    """The server's certificate is not what `sslmode` and `sslrootcert` of the URL ask for."""

    code = "database_certificate_refused"


async def when_reached(database: DatabaseSettings, work: Callable[[], Awaitable[T]]) -> T:
    """Do the work as soon as the database is there. Raises if it is not within `start_seconds`."""
    loop = asyncio.get_running_loop()
    until, is_told = loop.time() + database.start_seconds, False
    while True:
        try:
            return await work()
        except ConnectingFailed as failure:
            if failure.code != ConnectingFailed.code or loop.time() >= until:
                raise
            if not is_told:
                seconds = f"{database.start_seconds:g} s"
                click.echo(f"{failure.found}. Waiting {seconds} for it.", err=True)
                is_told = True
        await asyncio.sleep(LOOK_EVERY_SECONDS)


@asynccontextmanager
async def connected(database: DatabaseSettings) -> AsyncGenerator[Database, None]:
    """Open one connection for the block."""
    with explained(database.url):
        opened = await Database.connect(
            database.url,
            pool_size=1,
            acquire_seconds=database.acquire_seconds,
            statement_seconds=database.statement_seconds,
            has_prepared_statements=database.prepared_statements,
        )
    try:
        yield opened
    finally:
        await opened.close()


@contextmanager
def explained(url: str) -> Generator[None, None, None]:
    """Raise `ConnectingFailed` with advice for connection errors. Its text has no password."""
    try:
        yield
    except BaseException as error:
        if (advice := _advice(error, url)) is not None:
            raise advice from error
        raise


def database_name(url: str) -> str:
    """Return the database's name in the URL, empty if the server chooses it."""
    return urlsplit(url).path.removeprefix("/")


def _advice(error: BaseException, url: str) -> ConnectingFailed | None:
    reason = error.__cause__ if isinstance(error, DatabaseUnavailable) else error
    state, where = getattr(reason, "sqlstate", None), f"PostgreSQL at {_addresses(url)}"
    if state == DATABASE_MISSING:
        return DatabaseMissing(
            found=f"{where} has no database '{database_name(url)}'",
            remedy="`tollhouse init` creates it. For an existing deployment, correct database.url.",
        )
    if state in LOGIN_REFUSED:
        return LoginRefused(
            found=f"{where} refused the login: {_words(reason)}",
            remedy="Check the role and password in database.url, and the server's pg_hba.conf.",
        )
    if state in POOLER:
        return PoolerInBetween(
            found=f"{where} answers like a connection pooler: {_words(reason)}", remedy=DIRECT
        )
    if isinstance(reason, NoUsableHost) and reason.has_untrusted:
        return CertificateRefused(
            found=f"{where} cannot be trusted: {_words(reason)}",
            remedy="sslrootcert of the URL must name a file with the authority that signed the "
            "certificate. With sslmode=verify-full the host must be one of its names.",
        )
    if isinstance(error, DatabaseUnavailable):
        return ConnectingFailed(
            found=f"{where} cannot be reached: {_words(reason)}", remedy=_remedy(reason)
        )
    return None


def _remedy(reason: BaseException | None) -> str:
    if isinstance(reason, NoUsableHost) and reason.has_standby:
        return "Promote a server, or add the host of the primary to database.url."
    return "Start it, or correct database.url (postgresql://ROLE:PASSWORD@HOST:5432/DATABASE)."


def _addresses(url: str) -> str:
    return ", ".join(map(str, hosts_of(url)))


def _words(reason: BaseException | None) -> str:
    """Return the error's text, or its type's name if it has none, like a timeout.

    With several hosts, the text names each of them with its reason.
    """
    if isinstance(reason, NoUsableHost) and len(reason.failures) == 1:
        return reason.failures[0].reason
    return str(reason) or type(reason).__name__
