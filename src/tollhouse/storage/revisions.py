"""The schema revisions of the database, and those on which this version serves.

Each step of a revision, expand and contract, has a version table of Alembic. They are read without
it, because importing it takes longer than starting a worker or running a command.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Final, LiteralString, NamedTuple

from tollhouse.storage.database import Database, Row
from tollhouse.storage.errors import EarlierHistory, SchemaMismatch

VERSIONS: Final = Path(__file__).parent / "migrations" / "versions"

_Fetch = Callable[[LiteralString], Awaitable[Sequence[Row]]]


class SchemaState(NamedTuple):
    """The newest revisions whose two steps ran, None before the first migration."""

    expanded: str | None
    contracted: str | None
    """Releases that do not know this revision cannot use the database."""


@cache
def known() -> tuple[str, ...]:
    """Return the names of all revisions of this version, oldest first: modules begin with them."""
    return tuple(sorted(path.name[:4] for path in VERSIONS.glob("[0-9]*.py")))


def head() -> str:
    """Return the newest revision of this version."""
    return known()[-1]


async def state(fetch: _Fetch) -> SchemaState:
    """Return the revisions of the database; raise `EarlierHistory` if it is of 0.2.0."""
    (tables,) = await fetch(
        """
        SELECT to_regclass('schema_contracted') IS NULL AS is_empty,
               to_regclass('alembic_version') IS NOT NULL AS has_earlier_history
        """
    )
    if tables["has_earlier_history"]:
        raise EarlierHistory
    if tables["is_empty"]:
        return SchemaState(expanded=None, contracted=None)
    (row,) = await fetch(
        """
        SELECT (SELECT version_num FROM schema_expanded) AS expanded,
               (SELECT version_num FROM schema_contracted) AS contracted
        """
    )
    return SchemaState(expanded=row["expanded"], contracted=row["contracted"])


async def current(database: Database) -> SchemaState:
    """Return the revisions of the database, read in a transaction of its own."""
    async with database.transaction() as tx:
        return await state(tx.fetch_all)


def refuse_newer(contracted: str | None) -> None:
    """Raise `SchemaMismatch` if the database was contracted to a revision of a newer release."""
    if contracted is not None and contracted not in known():
        message = (
            f"The database is at schema revision {contracted}, which is newer than this software, "
            f"whose own is {head()}. Run the version of Tollhouse that migrated it, or a newer one."
        )
        raise SchemaMismatch(message)


def refuse_unaccepted(found: SchemaState) -> None:
    """Raise `SchemaMismatch` unless the database is expanded to `head`, or if it is newer."""
    refuse_newer(found.contracted)
    if (found.expanded or "") < head():
        message = (
            f"The database is at schema revision {found.expanded or 'none'}, and this software "
            f"needs {head()}. Run `tollhouse migrate`."
        )
        raise SchemaMismatch(message)


async def refuse_other_schema(database: Database) -> None:
    """Raise `SchemaMismatch` if this version cannot serve on the database's schema."""
    refuse_unaccepted(await current(database))
