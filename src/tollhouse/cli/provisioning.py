"""Creating the database itself, where the server allows it."""

from typing import TYPE_CHECKING, LiteralString, cast
from urllib.parse import unquote, urlsplit

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.cli.connecting import DatabaseMissing, connected, database_name
from tollhouse.settings import DatabaseSettings

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


async def ensure_database(url: str) -> bool:
    """Create the database that the address names if it is missing; true when it was."""
    try:
        async with connected(DatabaseSettings(url=url)):
            return False
    except DatabaseMissing:
        if not database_name(url):
            raise
    maintenance = urlsplit(url)._replace(path=f"/{MAINTENANCE_DATABASE}").geturl()
    reached = DatabaseSettings(url=maintenance, statement_seconds=CREATION_SECONDS)
    async with connected(reached) as server:
        return await _create(server, unquote(database_name(url)))


async def _create(server: "Database", name: str) -> bool:
    quoted = await server.fetch_all("SELECT quote_ident($1) AS name", name)
    try:
        # A name cannot be an argument of this statement; the server itself has quoted it.
        await _run(server, cast("LiteralString", f"CREATE DATABASE {quoted[0]['name']}"))
    except BaseException as error:
        state = getattr(error, "sqlstate", None)
        if state in ALREADY_THERE:
            return False
        if state == PERMISSION_DENIED:
            raise CreationRefused(name) from error
        raise
    return True


async def _run(server: "Database", statement: LiteralString) -> None:
    await server.fetch_all(statement)
