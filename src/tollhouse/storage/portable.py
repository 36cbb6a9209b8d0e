"""Rows of one organization as lines of text, to move them to the database of another cell.

Each package declares how its tables are read and written. A line is the JSON of a row, in which
numbers that only one database knows are replaced by what both know. So the lines of an organization
are equal in two databases if, and only if, its rows are.
"""

import hashlib
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, LiteralString

from msgspec import Struct

from tollhouse.base.ids import OrganizationId
from tollhouse.storage.database import Transaction

LINES_MAX: Final = 500
"""How many lines are read or written at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PortableTable:
    """How one table is moved.

    `read` has the organization as $1, and returns `line` in an order that does not depend on the
    database. `write` has the lines as $1. `remove` deletes the organization's earlier rows ($1)
    before; rows of a table without it are only ever added or overwritten.
    """

    name: str
    read: LiteralString
    write: LiteralString
    remove: LiteralString | None = None


def portable_table(
    name: LiteralString,
    *,
    order: LiteralString,
    without: LiteralString = "",
    on_conflict: LiteralString | None = None,
) -> PortableTable:
    """Return a table whose rows are moved as they are, but for the columns `without`.

    Earlier rows are removed before, or treated as `on_conflict` says.
    """
    select = f"SELECT (to_jsonb(t) - '{{{without}}}'::text[])::text AS line FROM {name} t"  # noqa: S608 - literals
    insert = f"""
        INSERT INTO {name}
        SELECT r.*
          FROM unnest($1::text[]) line
         CROSS JOIN LATERAL jsonb_populate_record(NULL::{name}, line::jsonb) r
    """  # noqa: S608 - literals
    removes = on_conflict is None
    return PortableTable(
        name=name,
        read=f"{select} WHERE organization_id = $1 ORDER BY {order}",
        write=insert if removes else f"{insert} ON CONFLICT {on_conflict}",
        remove=f"DELETE FROM {name} WHERE organization_id = $1" if removes else None,  # noqa: S608 - literals
    )


class TableDigest(Struct, frozen=True, kw_only=True):
    """The number of an organization's rows in a table, and the SHA-256 of their lines."""

    name: str
    rows: int
    sha256: str


class LineHash:
    """Adds up lines to a `TableDigest`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._rows = 0
        self._hash = hashlib.sha256()

    def add(self, line: str) -> None:
        """Count one line."""
        self._rows += 1
        self._hash.update(line.encode() + b"\n")

    def digest(self) -> TableDigest:
        """Return what was added up."""
        return TableDigest(name=self._name, rows=self._rows, sha256=self._hash.hexdigest())


async def lines_of(
    tx: Transaction, organization_id: OrganizationId, table: PortableTable
) -> AsyncGenerator[str]:
    """Yield the organization's lines in their order."""
    async for rows in tx.stream(table.read, organization_id, rows_at_once=LINES_MAX):
        for row in rows:
            yield row["line"]


async def digest_of(
    tx: Transaction, organization_id: OrganizationId, table: PortableTable
) -> TableDigest:
    """Return the digest of the organization's rows as they are."""
    counted = LineHash(table.name)
    async for line in lines_of(tx, organization_id, table):
        counted.add(line)
    return counted.digest()


async def replace(
    tx: Transaction, organization_id: OrganizationId, table: PortableTable, lines: Iterable[str]
) -> None:
    """Write lines, in place of the organization's earlier rows where these can be removed."""
    if table.remove is not None:
        await _remove(tx, organization_id, table.remove)
    batch: list[str] = []
    for line in lines:
        batch.append(line)
        if len(batch) == LINES_MAX:
            await _write(tx, table.write, batch)
            batch = []
    if batch:
        await _write(tx, table.write, batch)


async def _remove(
    tx: Transaction, organization_id: OrganizationId, statement: LiteralString
) -> None:
    await tx.execute(statement, organization_id)


async def _write(  # all organizations: a line has its own
    tx: Transaction, statement: LiteralString, lines: Sequence[str]
) -> None:
    await tx.execute(statement, lines)
