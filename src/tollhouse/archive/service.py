"""Archive days: export, compare, record, drop. A run that is killed goes on at the next run.

A partition is detached before it is exported, so that no row can be added to it any more. It is
dropped only after its files were read back and had the sums of the database, by organization.
"""

from collections.abc import Awaitable, Callable
from datetime import date, timedelta
from typing import Final

from tollhouse.archive import rules, store
from tollhouse.archive.errors import ArchiveDiffers
from tollhouse.archive.files import ArchiveFiles
from tollhouse.archive.types import FORMS, ArchivedTable, DayManifest
from tollhouse.storage import partitions
from tollhouse.storage.database import Database
from tollhouse.storage.partitions import DailyTable, Partition

EXPORT_SECONDS_MAX: Final = 86_400

Prepare = Callable[[Partition], Awaitable[bool]]


async def archive(
    database: Database,
    files: ArchiveFiles,
    partition: Partition,
    *,
    prepare: Prepare | None = None,
) -> DayManifest | None:
    """Move a day from the database into files, or return None if `prepare` returns False.

    Raises `ArchiveDiffers` if the files do not contain what the database has; the day then stays
    in the database. Raises `LockTimedOut` while another command uses the day.
    """
    table = ArchivedTable(partition.parent)
    manifest = await find_day(database, table, partition.day)
    if manifest is None:
        if prepare is not None and not await prepare(partition):
            return None
        partition = await partitions.detach(database, partition)
        manifest = await _export(database, files, partition)
    await partitions.remove(database, partition)
    return manifest


async def is_archived(database: Database, partition: Partition) -> bool:
    """Return whether a partition is archived, so that it may be dropped."""
    table = ArchivedTable(partition.parent)
    return await find_day(database, table, partition.day) is not None


async def older_than(
    database: Database, table: ArchivedTable, *, days_kept: int
) -> list[Partition]:
    """Return the partitions of a table that are due, oldest first."""
    async with database.transaction() as tx:
        first_kept = await partitions.today(tx) - timedelta(days=days_kept)
        return await partitions.older_than(tx, DailyTable(table), first_kept)


async def find_day(database: Database, table: ArchivedTable, day: date) -> DayManifest | None:
    """Return what is archived of a day, or None."""
    found = await find(database, table, day, day)
    return found[0] if found else None


async def find(
    database: Database, table: ArchivedTable, first_day: date, last_day: date
) -> list[DayManifest]:
    """Return the archived days of a table in a range, oldest first."""
    async with database.transaction() as tx:
        return await store.find(tx, table, first_day, last_day)


async def difference(database: Database, files: ArchiveFiles, day: DayManifest) -> str | None:
    """Read all files of a day; return how they differ from what was recorded, or None.

    Ledger entries are also compared with the sums that the ledger stored when it closed the day.
    """
    if (path := files.changed_file(day)) is not None:
        return f"{path} is missing, or has other bytes than were written"
    found = files.sums(day)
    total = rules.total(found.values(), summed=day.total.sums)
    if total != day.total:
        return rules.difference({"of any ID": day.total}, {"of any ID": total})
    if day.table != ArchivedTable.LEDGER_ENTRIES:
        return None
    async with database.transaction() as tx:
        closings = await store.closing_sums(tx, day.day)
    return rules.difference(*rules.comparable(closings, found))


async def _export(database: Database, files: ArchiveFiles, partition: Partition) -> DayManifest:
    """Write the files of a detached partition, compare them, and record them as archived."""
    table, name = ArchivedTable(partition.parent), partitions.table_of(partition)
    async with database.snapshot(statement_seconds=EXPORT_SECONDS_MAX) as tx:
        written = await files.write(table, partition.day, store.rows_of(tx, table, name))
        expected = await store.sums_of(tx, table, name)
    # After the snapshot: reading takes long, and the database ends transactions that stand idle.
    manifest = DayManifest(
        table=table,
        day=partition.day,
        total=rules.total(expected.values(), summed=FORMS[table].summed),
        files=written,
    )
    found = files.sums(manifest)
    if (words := rules.difference(expected, found)) is not None:
        message = f"{table} of {partition.day}: {words}. The day stays in the database."
        raise ArchiveDiffers(message)
    files.publish(manifest)
    async with database.transaction() as tx:
        await store.add(tx, manifest, location=files.url)
    return manifest
