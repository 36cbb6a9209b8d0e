"""The schema revisions of the database, and the range of them that this version accepts.

A revision after `LAST_IN_ONE_STEP` has two steps. The expand step adds what this version needs and
leaves everything that the previous release uses; the contract step removes the rest. The table
`alembic_version` has the newest contracted revision, because every release reads it at start-up,
and `schema_expansions` the later ones whose expand step ran.

Read without Alembic, because importing it takes longer than starting a worker or running a command.
"""

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import Final

from tollhouse.storage.database import Database, Transaction
from tollhouse.storage.errors import SchemaMismatch
from tollhouse.storage.migrations import versions

OLDEST_ACCEPTED: Final = "0016"
"""The schema of the previous release, on which this version serves before `tollhouse migrate`."""
LAST_IN_ONE_STEP: Final = "0016"
"""The newest revision from before expand and contract steps."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Revision:
    """A revision of this version: its statements, all literal, in the order of execution."""

    name: str
    expand: tuple[str, ...]
    contract: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemaState:
    """The revisions of a database. A release serves if one of them is in its accepted range."""

    contracted: str | None
    """The newest contracted revision: releases that do not know it cannot use the database. None
    before the first migration."""
    expanded: frozenset[str]
    """The later revisions whose expand step ran."""

    @property
    def newest(self) -> str | None:
        """The newest revision whose expand step ran."""
        return max(self.expanded, default=self.contracted)

    def has(self, revision: str) -> bool:
        """Whether the tables and columns that `revision` adds exist."""
        return revision in self.expanded or self.has_contracted(revision)

    def has_contracted(self, revision: str) -> bool:
        """Whether only workers that know `revision` can run."""
        return (self.contracted or "") >= revision


@cache
def all_revisions() -> tuple[Revision, ...]:
    """Return all revisions of this version, oldest first, which is the order of module names."""
    names = sorted(module.name for module in pkgutil.iter_modules(versions.__path__))
    modules = [importlib.import_module(f"{versions.__name__}.{name}") for name in names]
    return tuple(
        Revision(
            name=module.revision,
            expand=module.STATEMENTS,
            contract=module.CONTRACT if module.revision > LAST_IN_ONE_STEP else (),
        )
        for module in modules
    )


def known() -> list[str]:
    """Return the names of all revisions of this version, oldest first."""
    return [revision.name for revision in all_revisions()]


def head() -> str:
    """Return the newest revision of this version."""
    return known()[-1]


async def state(tx: Transaction) -> SchemaState:
    """Return the revisions of the database."""
    tables = await tx.fetch_all(
        """
        SELECT to_regclass('alembic_version') IS NOT NULL AS has_versions,
               to_regclass('schema_expansions') IS NOT NULL AS has_expansions
        """
    )
    contracted, expanded = None, frozenset[str]()
    if tables[0]["has_versions"]:
        contracted = await tx.fetch_value("SELECT version_num FROM alembic_version")
    if tables[0]["has_expansions"]:
        rows = await tx.fetch_all("SELECT revision FROM schema_expansions")
        expanded = frozenset(row["revision"] for row in rows)
    return SchemaState(contracted=contracted, expanded=expanded)


async def current(database: Database) -> SchemaState:
    """Return the revisions of the database, read in a transaction of its own."""
    async with database.transaction() as tx:
        return await state(tx)


def refuse_newer(contracted: str | None) -> None:
    """Raise `SchemaMismatch` if the database was contracted to a revision of a newer release."""
    if contracted is not None and contracted not in known():
        message = (
            f"The database is at schema revision {contracted}, which is newer than this software: "
            f"it accepts {OLDEST_ACCEPTED} to {head()}. "
            "Run the version of Tollhouse that migrated it, or a newer one."
        )
        raise SchemaMismatch(message)


def refuse_unaccepted(found: SchemaState) -> None:
    """Raise `SchemaMismatch` if none of the database's revisions is in the accepted range."""
    refuse_newer(found.contracted)
    if found.newest is None or found.newest < OLDEST_ACCEPTED:
        message = (
            f"The database is at schema revision {found.newest or 'none'}, and this software "
            f"accepts {OLDEST_ACCEPTED} to {head()}. Run `tollhouse migrate`."
        )
        raise SchemaMismatch(message)


async def refuse_other_schema(database: Database, needed: str | None = None) -> SchemaState:
    """Return the schema, or raise `SchemaMismatch` if this version cannot serve on it.

    `needed` is a revision that the configuration needs.
    """
    found = await current(database)
    refuse_unaccepted(found)
    if needed is not None:
        _require(found, needed)
    return found


async def require(database: Database, revision: str) -> None:
    """Raise `SchemaMismatch` unless the tables and columns that `revision` adds exist."""
    _require(await current(database), revision)


def _require(found: SchemaState, revision: str) -> None:
    if not found.has(revision):
        message = (
            f"The database is at schema revision {found.newest}, and this needs {revision}. "
            "Run `tollhouse migrate`."
        )
        raise SchemaMismatch(message)
