"""SQL of the archive: rows and sums of one day, and which days are archived."""

from collections.abc import AsyncIterator
from datetime import date
from typing import Final, LiteralString, cast

import msgspec

from tollhouse.archive.types import (
    FORMS,
    ArchivedFile,
    ArchivedTable,
    ColumnType,
    DayManifest,
    DaySums,
    SumsByOrganization,
)
from tollhouse.storage.database import Row, Transaction

ROWS_AT_ONCE: Final = 131_072


async def rows_of(  # all organizations: days are archived as a whole
    tx: Transaction, table: str, partition: str
) -> AsyncIterator[list[Row]]:
    """Yield all rows of a partition in the order of the table's key, many at once."""
    form = FORMS[table]
    columns = ", ".join(
        f"{name}::text" if kind is ColumnType.ID else name for name, kind in form.columns.items()
    )
    key = ", ".join(f"{partition}.{name}" for name in form.key)
    statement = f"SELECT {columns} FROM {partition} ORDER BY {key}"  # noqa: S608 - see `_read`
    async for rows in _read(tx, statement):
        yield rows


async def sums_of(  # all organizations: days are archived as a whole
    tx: Transaction, table: str, partition: str
) -> SumsByOrganization:
    """Return the sums of a partition by organization."""
    form = FORMS[table]
    summed = form.summed
    sums = ", ".join(f"coalesce(sum({name}), 0) AS {name}" for name in summed)
    columns = f"organization_id::text, count(*) AS rows, {sums}"
    statement = f"SELECT {columns} FROM {partition} GROUP BY 1"  # noqa: S608 - see `_read`
    return {
        row["organization_id"]: DaySums(
            rows=row["rows"], sums={name: int(row[name]) for name in summed}
        )
        async for rows in _read(tx, statement)
        for row in rows
    }


def _read(tx: Transaction, statement: str) -> AsyncIterator[list[Row]]:
    """Run a statement on one partition.

    A table's name cannot be an argument. `partitions.table_of` lets no other name through than that
    of a day, and the columns are constants.
    """
    return tx.stream(cast("LiteralString", statement), rows_at_once=ROWS_AT_ONCE)


async def add(  # all organizations: days are archived as a whole
    tx: Transaction, manifest: DayManifest, *, location: str
) -> None:
    """Record that a day is archived. Its partition may be dropped from now on."""
    await tx.execute(
        """
        INSERT INTO archived_days (
            archived_table, day, location, row_count, size_bytes, sums, files)
        VALUES ($1, $2, $3, $4, $5, $6::jsonb, $7::jsonb)
            ON CONFLICT (archived_table, day) DO NOTHING
        """,
        manifest.table,
        manifest.day,
        location,
        *_stored(manifest),
    )


async def find(  # all organizations: days are archived as a whole
    tx: Transaction, table: ArchivedTable, first_day: date, last_day: date
) -> list[DayManifest]:
    """Return the archived days of a table in a range, oldest first."""
    rows = await tx.fetch_all(
        """
        SELECT day, row_count, sums::text, files::text
          FROM archived_days
         WHERE archived_table = $1
           AND day BETWEEN $2 AND $3
         ORDER BY day
        """,
        table,
        first_day,
        last_day,
    )
    return [_manifest(table, row) for row in rows]


async def closing_sums(  # all organizations: days are archived as a whole
    tx: Transaction, day: date
) -> SumsByOrganization:
    """Return what the ledger stored when it closed a day, by organization."""
    rows = await tx.fetch_all(
        """
        SELECT organization_id::text,
               sum(input_pico) AS input_pico, sum(cached_input_pico) AS cached_input_pico,
               sum(output_pico) AS output_pico, sum(image_pico) AS image_pico,
               sum(request_pico) AS request_pico, sum(cache_write_pico) AS cache_write_pico,
               sum(excess_pico) AS excess_pico, sum(unknown_pico) AS unknown_pico
          FROM ledger_closings
         WHERE admitted_day = $1
         GROUP BY 1
        """,
        day,
    )
    return {
        row["organization_id"]: DaySums(
            rows=0,
            sums={name: int(value) for name, value in row.items() if name.endswith("_pico")},
        )
        for row in rows
    }


def _stored(manifest: DayManifest) -> tuple[int, int, str, str]:
    """Return the number of rows, the size, the sums and the files of a day, as they are stored."""
    sums = {name: str(value) for name, value in manifest.total.sums.items()}
    return (
        manifest.total.rows,
        manifest.size_bytes,
        msgspec.json.encode(sums).decode(),
        msgspec.json.encode(manifest.files).decode(),
    )


def _manifest(table: str, row: Row) -> DayManifest:
    sums = msgspec.json.decode(row["sums"], type=dict[str, str])
    return DayManifest(
        table=table,
        day=row["day"],
        total=DaySums(
            rows=row["row_count"], sums={name: int(value) for name, value in sums.items()}
        ),
        files=msgspec.json.decode(row["files"], type=list[ArchivedFile]),
    )
