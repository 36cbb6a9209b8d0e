"""Creating and dropping the database of a deployment."""

from typing import TYPE_CHECKING, LiteralString, cast
from urllib.parse import unquote, urlsplit

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.cli.connecting import DatabaseMissing, connected, database_name
from tollhouse.cli.session import Session
from tollhouse.settings import DatabaseSettings
from tollhouse.storage import revisions
from tollhouse.storage.sealing import Sealer

if TYPE_CHECKING:
    from tollhouse.storage.database import Database

MAINTENANCE_DATABASE = "postgres"
CREATION_SECONDS = 120.0
PERMISSION_DENIED = "42501"
ALREADY_THERE = frozenset({"42P04", "23505"})


class CreationRefused(GatewayError):
    """The database is missing and the role may not create it."""

    kind = Kind.DENIED
    code = "database_creation_refused"
    template = (
        "The role in database.url may not create databases. Ask an administrator of the server to "
        'run: CREATE DATABASE "{self.name}" OWNER "ROLE", with the role of database.url. Then run '
        "this again."
    )
    name: str


class DatabaseTaken(GatewayError):
    """The database has keys that were made with other secrets."""

    kind = Kind.CONFLICT
    code = "database_taken"
    template = (
        "The database belongs to a deployment with other secrets. Name another database, or use "
        "the configuration file of that deployment."
    )


async def ensure_database(url: str) -> bool:
    """Create the database of the URL if it is missing. Return whether it was created."""
    try:
        async with connected(DatabaseSettings(url=url)):
            return False
    except DatabaseMissing:
        if not database_name(url):
            raise
    async with connected(_maintenance(url)) as server:
        return await _create(server, unquote(database_name(url)))


async def drop_database(url: str) -> None:
    """Drop the database of the URL, and end all connections to it."""
    async with connected(_maintenance(url)) as server:
        name = await _quoted(server, unquote(database_name(url)))
        await _run(server, cast("LiteralString", f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))


async def refuse_taken(operator: Session) -> None:
    """Raise `DatabaseTaken` if the database has data keys that another master secret opens.

    Called before the database is migrated or changed.
    """
    if (await revisions.current(operator.database)).contracted is None:
        return
    opening_ids = await Sealer(operator.database, operator.masters).opening_ids()
    if None in opening_ids.values():
        raise DatabaseTaken


async def claim(operator: Session) -> None:
    """Make the database's lasting data key, by which `refuse_taken` knows the deployment."""
    await Sealer(operator.database, operator.masters).seal_lasting(b"", bound_to=b"")


def _maintenance(url: str) -> DatabaseSettings:
    """Return the settings of the maintenance database, which every server has."""
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
            raise CreationRefused(name=name) from error
        raise
    return True


async def _quoted(server: "Database", name: str) -> str:
    """Return the name quoted by the server, since it cannot be a query argument."""
    rows = await server.fetch_all("SELECT quote_ident($1) AS name", name)
    return rows[0]["name"]


async def _run(server: "Database", statement: LiteralString) -> None:
    await server.fetch_all(statement)
