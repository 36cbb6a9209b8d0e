"""Export of finished days as files. Their rows stay in the database.

Rows and their sums come from one snapshot, and the files are recorded only after they were read
back. A run that is killed leaves no record of the day, so that the next run replaces its files.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from tollhouse.archive import rules, store
from tollhouse.archive.errors import ArchiveDiffers
from tollhouse.archive.files import ArchiveFiles
from tollhouse.archive.service import EXPORT_SECONDS_MAX
from tollhouse.archive.types import FORMS, DayManifest, ExportedTable
from tollhouse.storage import partitions
from tollhouse.storage.database import Database
from tollhouse.storage.partitions import DailyTable, Partition, PartitionState

DAYS_BACK: Final = 31
DAYS_CHECKED: Final = 7
"""Days for which every night compares the database with what was exported."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportRange:
    """The days to export or to compare, both included."""

    first: date
    last: date


ReadDay = Callable[
    [Callable[[Database], Awaitable[DayManifest | None]]], Awaitable[DayManifest | None]
]


@dataclass(frozen=True, kw_only=True, slots=True)
class _DueDay:
    table: ExportedTable
    partition: Partition
    known: DayManifest | None


class DayExporter:
    """Exports days of all organizations to one address.

    `is_final` returns False while a request of the day has no final cost. `read` runs a query on
    a standby that has all that the database has, or on the database.
    """

    def __init__(
        self,
        database: Database,
        files: ArchiveFiles,
        *,
        is_final: Callable[[date], Awaitable[bool]],
        read: ReadDay,
    ) -> None:
        self._database = database
        self._files = files
        self._is_final = is_final
        self._read = read

    async def run(self, chosen: ExportRange | None = None) -> list[DayManifest]:
        """Export what is due and final, and return the days that were written.

        Without a range, a day is due if it was not exported yet, and for a week once a day: it is
        written again if it has changed, such as by a backfill. With a range, all its days are due.
        """
        written: list[DayManifest] = []
        for due in await self._due(chosen):
            if not await self._is_final(due.partition.day):
                continue
            if (manifest := await self._export(due)) is not None:
                written.append(manifest)
        return written

    async def _due(self, chosen: ExportRange | None) -> list[_DueDay]:
        found: list[_DueDay] = []
        async with self._database.transaction() as tx:
            last_over = await store.last_day_over(tx)
            within = chosen or ExportRange(
                first=last_over - timedelta(days=DAYS_BACK - 1), last=last_over
            )
            for table in ExportedTable:
                source = DailyTable(FORMS[table].source or table)
                after = min(within.last, last_over) + timedelta(days=1)
                known = await store.exported(tx, self._files.url, table, within.first, within.last)
                found += [
                    _DueDay(table=table, partition=partition, known=known.get(partition.day))
                    for partition in await partitions.older_than(tx, source, after)
                    if partition.state is PartitionState.ATTACHED and partition.day >= within.first
                ]
            first_checked = last_over - timedelta(days=DAYS_CHECKED - 1)
            checked = await store.checked_today(tx, self._files.url)
        return [
            due
            for due in found
            if chosen is not None
            or due.known is None
            or (
                due.partition.day >= first_checked and (due.table, due.partition.day) not in checked
            )
        ]

    async def _export(self, due: _DueDay) -> DayManifest | None:
        """Write and record a day; None if its files are there and have the database's sums."""
        table, day, files, known = due.table, due.partition.day, self._files, due.known
        name = partitions.table_of(due.partition)

        async def write(source: Database) -> DayManifest | None:
            async with source.snapshot(statement_seconds=EXPORT_SECONDS_MAX) as tx:
                expected = await store.sums_of(tx, table, name)
                total = rules.total(expected.values(), summed=FORMS[table].summed)
                if known is not None and known.total == total and files.is_published(known):
                    return None
                written = await files.write(table, day, store.rows_of(tx, table, name))
            manifest = DayManifest(table=table, day=day, total=total, files=written)
            if (words := rules.difference(expected, files.sums(manifest))) is not None:
                message = f"{table} of {day}: {words}. The day is not exported."
                raise ArchiveDiffers(message)
            return manifest

        manifest = await self._read(write)
        if manifest is not None:
            files.publish(manifest)
        recorded = manifest or known
        assert recorded is not None, "a day is written unless it is known"
        async with self._database.transaction() as tx:
            await store.record_exported(tx, recorded, location=files.url)
        return manifest


async def exported_until(database: Database, url: str) -> int:
    """Return the end of the newest day whose costs are at an address, in Unix time, or 0."""
    async with database.transaction() as tx:
        return await store.exported_until(tx, url, ExportedTable.COSTS)
