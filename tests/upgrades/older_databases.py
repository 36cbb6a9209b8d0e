"""Databases of older revisions with rows, and everything that a database has."""

import asyncpg
import msgspec

from tests.storage.catalogs import Catalog, read_catalog
from tests.upgrades.older_rows import ROWS, Change
from tollhouse.storage import revisions, schema


async def build(url: str, revision: str) -> None:
    """Bring an empty database to a revision, with the rows that earlier ones have written."""
    for each in revisions.known():
        if each > revision:
            return
        await schema.migrate(url, to=each)
        await insert_rows(url, each)


async def insert_rows(url: str, revision: str) -> None:
    """Write the rows that the release of a revision has written first."""
    connection = await asyncpg.connect(url)
    try:
        for change in ROWS.get(revision, ()):
            await _write(connection, change)
    finally:
        await connection.close()


async def _write(connection: "asyncpg.Connection[asyncpg.Record]", change: Change) -> None:
    if isinstance(change, str):
        await connection.execute(change)
        return
    table, row = change
    columns = ", ".join(row)
    await connection.execute(
        f"INSERT INTO {table} ({columns})"  # noqa: S608 - the test's own
        f" SELECT {columns} FROM jsonb_populate_record(NULL::{table}, $1::text::jsonb)",
        msgspec.json.encode(row).decode(),
    )


class Contents(msgspec.Struct, frozen=True):
    """The schema of a database, and all rows by their table."""

    catalog: Catalog
    rows: dict[str, list[str]]


_TABLES = """
    SELECT relname::text AS name
      FROM pg_class
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
"""


async def contents_of(url: str) -> Contents:
    """Return everything in a database but the times of the migration itself."""
    connection = await asyncpg.connect(url)
    try:
        rows: dict[str, list[str]] = {}
        for table in [row["name"] for row in await connection.fetch(_TABLES)]:
            found = await connection.fetch(
                f"SELECT (to_jsonb(t) - 'expanded_at')::text AS line FROM {table} t ORDER BY 1"  # noqa: S608 - of the catalog
            )
            rows[table] = [row["line"] for row in found]
        return Contents(await read_catalog(connection), rows)
    finally:
        await connection.close()
