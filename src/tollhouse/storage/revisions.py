"""The schema revision of the database, and the one that this version of the software needs.

Read without Alembic, because importing it takes longer than starting a worker or running a command.
"""

import importlib
import pkgutil

from tollhouse.storage.database import Database
from tollhouse.storage.errors import SchemaMismatch
from tollhouse.storage.migrations import versions


def known() -> list[str]:
    """Return all revisions of this version, oldest first, which is the order of module names."""
    names = sorted(module.name for module in pkgutil.iter_modules(versions.__path__))
    return [importlib.import_module(f"{versions.__name__}.{name}").revision for name in names]


def head() -> str:
    """Return the revision that this version of the software needs."""
    return known()[-1]


async def current(database: Database) -> str | None:
    """Return the revision of the database, or None if it was never migrated."""
    tables = await database.fetch_all("SELECT to_regclass('alembic_version') AS found")
    if tables[0]["found"] is None:
        return None
    rows = await database.fetch_all("SELECT version_num FROM alembic_version")
    return rows[0]["version_num"] if rows else None


def refuse_newer(revision: str | None) -> None:
    """Raise `SchemaMismatch` if this version of the software does not know the revision."""
    if revision is not None and revision not in known():
        message = (
            f"The database is at schema revision {revision}, which is newer than this software. "
            "Run the version of Tollhouse that migrated it, or a newer one."
        )
        raise SchemaMismatch(message)


async def refuse_other_schema(database: Database) -> None:
    """Raise `SchemaMismatch` unless the database has exactly the schema that is needed."""
    found, needed = await current(database), head()
    if found == needed:
        return
    refuse_newer(found)
    message = (
        f"The database is at schema revision {found or 'none'}, not {needed}. "
        "Run `tollhouse migrate`."
    )
    raise SchemaMismatch(message)
