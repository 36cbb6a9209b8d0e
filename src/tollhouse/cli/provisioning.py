"""The database of a new deployment: created where the server allows it, and nobody else's."""

from typing import TYPE_CHECKING, LiteralString, cast
from urllib.parse import unquote, urlsplit

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.cli.connecting import DatabaseMissing, connected, database_name
from tollhouse.cli.session import Session
from tollhouse.keys import pepper_versions
from tollhouse.keys.pepper_versions import PepperMismatch
from tollhouse.settings import DatabaseSettings
from tollhouse.storage import revisions

if TYPE_CHECKING:
    from tollhouse.storage.database import Database

MAINTENANCE_DATABASE = "postgres"
CREATION_SECONDS = 120.0
PERMISSION_DENIED = "42501"
ALREADY_THERE = frozenset({"42P04", "23505"})


class CreationRefused(GatewayError):
    """The role may not create databases."""

    kind = Kind.DENIED
    code = "database_creation_refused"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The role in database.url may not create databases. Let an administrator of the "
            f'server run: CREATE DATABASE "{name}" OWNER "the role". Then run this again.'
        )


class DatabaseTaken(GatewayError):
    """Keys in it were made with secrets that this file would not have."""

    kind = Kind.CONFLICT
    code = "database_taken"

    def __init__(self) -> None:
        super().__init__(
            "The database belongs to a deployment with other secrets. Name another database, "
            "or use that deployment's own configuration file."
        )


async def ensure_database(url: str) -> bool:
    """Create the database that the address names if it is missing; true when it was."""
    try:
        async with connected(DatabaseSettings(url=url)):
            return False
    except DatabaseMissing:
        if not database_name(url):
            raise
    async with connected(_maintenance(url)) as server:
        return await _create(server, unquote(database_name(url)))


async def drop_database(url: str) -> None:
    """With all that is in it, and whoever is connected to it."""
    async with connected(_maintenance(url)) as server:
        name = await _quoted(server, unquote(database_name(url)))
        await _run(server, cast("LiteralString", f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))


async def refuse_taken(operator: Session) -> None:
    """Before anything is changed: another deployment's database must not even be migrated."""
    if await revisions.current(operator.database) is None:
        return
    try:
        async with operator.database.transaction() as tx:
            await pepper_versions.verify(tx, operator.peppers)
    except PepperMismatch:
        raise DatabaseTaken from None


def _maintenance(url: str) -> DatabaseSettings:
    """A database of the same server that is always there."""
    maintenance = urlsplit(url)._replace(path=f"/{MAINTENANCE_DATABASE}").geturl()
    return DatabaseSettings(url=maintenance, statement_seconds=CREATION_SECONDS)


async def _create(server: "Database", name: str) -> bool:
    quoted = await _quoted(server, name)
    try:
        await _run(server, cast("LiteralString", f"CREATE DATABASE {quoted}"))
    except BaseException as error:
        state = getattr(error, "sqlstate", None)
        if state in ALREADY_THERE:
            return False
        if state == PERMISSION_DENIED:
            raise CreationRefused(name) from error
        raise
    return True


async def _quoted(server: "Database", name: str) -> str:
    """A name cannot be an argument of a statement, so the server itself quotes it."""
    rows = await server.fetch_all("SELECT quote_ident($1) AS name", name)
    return rows[0]["name"]


async def _run(server: "Database", statement: LiteralString) -> None:
    await server.fetch_all(statement)
