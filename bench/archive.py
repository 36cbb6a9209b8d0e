"""`python -m bench.archive [--json] [--requests 1000000]`: what moving days into files costs.

A database of its own gets ten days with as many requests, two ledger entries each, and a day that
stays. The ten days are archived into a temporary directory and dropped. It fails unless the sums
are equal before and after, `ledger verify` and `archive verify` find nothing, and reports answer as
before.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

import asyncpg

from bench.support.volume import Volume, load
from tests.support import databases
from tests.support.gateway import settings_for
from tollhouse.archive import service
from tollhouse.archive.files import ArchiveFiles
from tollhouse.archive.types import ArchivedTable, DayManifest
from tollhouse.base.clock import SystemClock
from tollhouse.base.ids import OrganizationId
from tollhouse.ledger import partitions as ledger_days
from tollhouse.ledger import verification
from tollhouse.pools import connect
from tollhouse.reports import service as reports
from tollhouse.reports.types import CostFilter, CostQuery, CostReport, CostSubject, Width
from tollhouse.storage import migrate
from tollhouse.storage.database import Database

DAYS = 10
ORGANIZATIONS = 1_000
KEPT_DAYS = 1
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ArchiveCost:
    """What one table cost."""

    rows: int
    database_bytes: int
    archive_bytes: int
    seconds: float

    @property
    def rows_per_second(self) -> float:
        """How fast rows were moved, with reading back and dropping."""
        return self.rows / self.seconds


async def timed(work: Awaitable[T]) -> tuple[T, float]:
    """Return the result and the seconds that it took."""
    began = time.perf_counter()
    return await work, time.perf_counter() - began


async def size(database: Database, table: ArchivedTable) -> int:
    """Return the bytes of all partitions of a table, with their indexes."""
    rows = await database.fetch_all(
        "SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0)::bigint AS bytes"
        " FROM pg_inherits WHERE inhparent = $1::text::regclass",
        table,
    )
    return rows[0]["bytes"]


async def archive_all(
    database: Database, files: ArchiveFiles, table: ArchivedTable
) -> list[DayManifest]:
    """Archive all days but the last, as the command does."""
    is_ledger = table is ArchivedTable.LEDGER_ENTRIES
    close = partial(ledger_days.close, database) if is_ledger else None
    due = await service.older_than(database, table, days_kept=KEPT_DAYS)
    moved = [await service.archive(database, files, each, prepare=close) for each in due]
    assert all(moved), "a day is open"
    return [day for day in moved if day is not None and day.total.rows]


async def reported(database: Database, organization_id: OrganizationId) -> CostReport:
    """Return the report of all days of one organization."""
    now = SystemClock().now()
    start = int((now - timedelta(days=DAYS + 2)).timestamp()) // 86_400 * 86_400
    question = CostQuery(
        subject=CostSubject.COSTS,
        start=start,
        width=Width.DAY,
        only=CostFilter(project_ids=None, api_key_ids=None),
        grouping=frozenset(),
    )
    place = reports.first_place(question, None, now=now)
    assert place is not None, "the range has days"
    async with database.transaction() as tx:
        return await reports.read(tx, organization_id, question, place, buckets_max=DAYS + 3)


async def differences(database: Database, organization_ids: list[OrganizationId]) -> int:
    """Return the number of differences that `ledger verify` finds."""
    found = [await verification.verify(database, each) for each in organization_ids]
    return sum(map(len, found))


def queries(
    files: ArchiveFiles, days: list[DayManifest], largest: OrganizationId
) -> dict[str, Callable[[], object]]:
    """Return what is asked of the archive, by name."""
    one_day = days[len(days) // 2]
    found = files.find([one_day], {}, rows_max=1)[0]
    return {
        "one_request_by_id": lambda: files.find(
            [one_day], {"request_id": found["request_id"]}, rows_max=1
        ),
        "one_organization_one_day": lambda: files.total(one_day, {"organization_id": str(largest)}),
        "one_organization_all_days": lambda: [
            files.total(day, {"organization_id": str(largest)}) for day in days
        ],
        "all_rows_all_days": lambda: [files.total(day, {}) for day in days],
    }


async def measured(requests: int, directory: Path) -> dict[str, object]:
    """Load, archive and query; return all figures."""
    async with databases.temporary() as url:
        await migrate.migrate(url)
        connection = await asyncpg.connect(url)
        volume = Volume(
            organizations=ORGANIZATIONS,
            requests_per_day=requests // DAYS,
            days=DAYS + KEPT_DAYS,
        )
        _, load_seconds = await timed(load(connection, volume))
        rows = await connection.fetch("SELECT id FROM organizations ORDER BY id")
        organization_ids = [OrganizationId(row["id"]) for row in rows]
        await connection.close()
        database = await connect(settings_for(url))
        try:
            found = await _archived(database, ArchiveFiles(directory.as_uri()), organization_ids)
        finally:
            await database.close()
    return {"requests": requests, "load_seconds": round(load_seconds, 1), **found}


async def _archived(
    database: Database, files: ArchiveFiles, organization_ids: list[OrganizationId]
) -> dict[str, object]:
    largest = organization_ids[0]
    before = await reported(database, largest)
    bytes_before = await _database_bytes(database)
    costs: dict[str, object] = {}
    days: dict[ArchivedTable, list[DayManifest]] = {}
    for table in ArchivedTable:
        empty_or_today = await size(database, table)
        days[table], seconds = await timed(archive_all(database, files, table))
        cost = ArchiveCost(
            rows=sum(day.total.rows for day in days[table]),
            database_bytes=empty_or_today - await size(database, table),
            archive_bytes=sum(day.size_bytes for day in days[table]),
            seconds=round(seconds, 2),
        )
        costs[table] = {**asdict(cost), "rows_per_second": round(cost.rows_per_second)}
    for table in ArchivedTable:
        for day in days[table]:
            assert await service.difference(database, files, day) is None
    assert await reported(database, largest) == before
    seconds_of: dict[str, float] = {}
    for name, ask in queries(files, days[ArchivedTable.REQUESTS], largest).items():
        began = time.perf_counter()
        ask()
        seconds_of[name] = round(time.perf_counter() - began, 4)
    return {
        "tables": costs,
        "database_bytes_before": bytes_before,
        "database_bytes_after": await _database_bytes(database),
        "query_seconds": seconds_of,
        "ledger_differences": await differences(database, organization_ids),
    }


async def _database_bytes(database: Database) -> int:
    rows = await database.fetch_all("SELECT pg_database_size(current_database()) AS bytes")
    return rows[0]["bytes"]


def main() -> None:
    """Measure and tell; with `--json` the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.archive")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--requests", type=int, default=100_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tollhouse-archive-") as directory:
        found = asyncio.run(measured(arguments.requests, Path(directory)))
    sys.stdout.write(f"{json.dumps(found, indent=2)}\n")
    if arguments.json:
        sys.stdout.write(f"{json.dumps(found)}\n")
    sys.exit(1 if found["ledger_differences"] else 0)


if __name__ == "__main__":
    main()
