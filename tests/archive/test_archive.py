"""Days in files: each row once, sums equal, and nothing that Tollhouse answers changes."""

import hashlib
from collections.abc import Generator
from datetime import UTC, datetime, time, timedelta
from functools import partial
from pathlib import Path

import duckdb
import msgspec
import pytest

from tests.activity.records import Customer
from tests.archive.past_days import (
    KEPT_DAYS,
    OLD_DAYS,
    REQUESTS_PER_DAY,
    PastDays,
    archive_all,
    archived,
    past_days,
)
from tests.archive.s3_server import running_s3
from tests.ledger.invariants import assert_conserved
from tests.ledger.past import days_ago
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.activity import service as activity
from tollhouse.activity.recorder import RequestRecorder
from tollhouse.archive import service
from tollhouse.archive.files import ArchiveFiles
from tollhouse.archive.types import ArchivedTable, DaySums
from tollhouse.base.clock import SystemClock
from tollhouse.ledger import partitions as ledger_days
from tollhouse.reports import service as reports
from tollhouse.reports.errors import DetailIsGone
from tollhouse.reports.types import CostFilter, CostQuery, CostReport, CostSubject, Width
from tollhouse.storage.database import Database

ENTRIES_PER_DAY = 4


@pytest.fixture
async def past(org: OrganizationFixture, database_url: str) -> PastDays:
    return await past_days(org, database_url)


@pytest.fixture(params=["directory", "s3"])
def url(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[str]:
    if request.param == "directory":
        yield (tmp_path / "archive").as_uri()
    else:
        with running_s3(monkeypatch) as address:
            yield address


@pytest.fixture
def directory(tmp_path: Path) -> ArchiveFiles:
    return ArchiveFiles((tmp_path / "archive").as_uri())


async def stored(database: Database, table: ArchivedTable) -> int:
    if table is ArchivedTable.REQUESTS:
        return len(await database.fetch_all("SELECT request_id FROM requests"))
    return len(await database.fetch_all("SELECT reservation_id FROM ledger_entries"))


async def report(past: PastDays, width: Width) -> CostReport:
    day = datetime.combine(days_ago(max(OLD_DAYS)), time(), UTC)
    question = CostQuery(
        subject=CostSubject.COSTS,
        start=int(day.timestamp()),
        width=width,
        only=CostFilter(project_ids=None, api_key_ids=None),
        grouping=frozenset(),
    )
    end = int((day + timedelta(days=3)).timestamp())
    place = reports.first_place(question, end, now=datetime.now(UTC))
    assert place is not None
    async with past.database.transaction() as tx:
        return await reports.read(
            tx, past.customer.organization_id, question, place, buckets_max=72
        )


async def test_old_days_are_in_files_with_every_row_once_and_gone_from_the_database(
    past: PastDays, url: str
) -> None:
    before = [await report(past, Width.DAY), await report(past, Width.HOUR)]
    rows = await past.database.fetch_all("SELECT * FROM requests ORDER BY request_id")
    files = ArchiveFiles(url)

    moved = await archive_all(past.database, files)

    days = await archived(past.database)
    assert {day for _, day in days} == {days_ago(days) for days in OLD_DAYS}
    assert len(days) == 4
    assert {manifest.table for manifest in moved} == set(ArchivedTable)
    assert await stored(past.database, ArchivedTable.REQUESTS) == REQUESTS_PER_DAY
    assert await stored(past.database, ArchivedTable.LEDGER_ENTRIES) == ENTRIES_PER_DAY
    found = [
        row
        for (table, _), manifest in days.items()
        if table is ArchivedTable.REQUESTS
        for row in files.find([manifest], {}, rows_max=1_000)
    ]
    old = [row for row in rows if row["day"] < days_ago(KEPT_DAYS)]
    expected = [{name: _text(value) for name, value in row.items()} for row in old]
    assert sorted(found, key=_id) == sorted(expected, key=_id)
    for manifest in days.values():
        assert files.manifest(manifest.table, manifest.day) == manifest
        assert await service.difference(past.database, files, manifest) is None
    assert [await report(past, Width.DAY), await report(past, Width.HOUR)] == before
    await assert_conserved(past.database)


def _text(value: object) -> object:
    """As a file has it: IDs as text."""
    return str(value) if type(value).__name__ == "UUID" else value


def _id(row: dict[str, object]) -> str:
    return str(row["request_id"])


async def test_a_query_finds_what_matches_and_no_other_row(
    past: PastDays, directory: ArchiveFiles
) -> None:
    await archive_all(past.database, directory)
    days = [
        day for (table, _), day in (await archived(past.database)).items() if table == "requests"
    ]
    one = directory.find(days, {}, rows_max=1)[0]

    assert directory.find(days, {"request_id": one["request_id"]}, rows_max=10) == [one]
    assert directory.find(days, {"model": "unknown"}, rows_max=10) == []
    assert len(directory.find(days, {"model": "example/model"}, rows_max=50)) == 50
    total = directory.total(days[0], {"organization_id": str(past.customer.organization_id)})
    assert total == days[0].total
    assert directory.total(days[0], {"api_key_id": one["request_id"]}).rows == 0


async def test_a_changed_file_is_found(
    past: PastDays, directory: ArchiveFiles, tmp_path: Path
) -> None:
    await archive_all(past.database, directory)
    days = await archived(past.database)
    first, second = (day for (table, _), day in days.items() if table == "ledger_entries")
    folder = tmp_path / "archive" / "ledger_entries"
    files = [folder / f"day={each.day}" / "part-00000.parquet" for each in (first, second)]

    files[0].write_bytes(files[1].read_bytes())
    files[1].unlink()

    # Both days have equal amounts; the rows of one are not those of the other.
    assert first.total == second.total
    assert "has other bytes" in str(await service.difference(past.database, directory, first))
    assert "is missing" in str(await service.difference(past.database, directory, second))


async def test_a_closing_that_was_changed_is_found(past: PastDays, directory: ArchiveFiles) -> None:
    await archive_all(past.database, directory)
    day = (await archived(past.database))[ArchivedTable.LEDGER_ENTRIES, days_ago(OLD_DAYS[0])]

    await past.ledger.tamper(
        "UPDATE ledger_closings SET request_pico = request_pico + 1 WHERE admitted_day = $1",
        day.day,
    )

    found = await service.difference(past.database, directory, day)
    assert found is not None
    assert "request_pico" in found


async def test_files_of_a_version_without_cache_writes_are_read(
    past: PastDays, directory: ArchiveFiles, tmp_path: Path
) -> None:
    await archive_all(past.database, directory)
    day = (await archived(past.database))[ArchivedTable.LEDGER_ENTRIES, days_ago(OLD_DAYS[0])]
    written = {"cache_write_tokens", "cache_write_pico"}
    (file,) = day.files
    path = tmp_path / "archive" / "ledger_entries" / f"day={day.day}" / file.name
    duckdb.execute(
        f"""
        COPY (SELECT * EXCLUDE (cache_write_tokens, cache_write_pico)
                FROM read_parquet('{path}', hive_partitioning = false))
          TO '{path}.older' (FORMAT parquet)
        """  # noqa: S608 - our own file
    )
    content = path.with_suffix(".parquet.older").rename(path).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    older = msgspec.structs.replace(
        day,
        total=DaySums(
            rows=day.total.rows,
            sums={name: each for name, each in day.total.sums.items() if name not in written},
        ),
        files=[msgspec.structs.replace(file, size_bytes=len(content), sha256=digest)],
    )

    assert await service.difference(past.database, directory, older) is None
    assert directory.total(older, {}) == day.total
    assert directory.find([older], {}, rows_max=1)[0]["cache_write_pico"] is None


async def test_a_record_that_comes_after_the_export_is_dropped_and_not_half_archived(
    past: PastDays, directory: ArchiveFiles, customer: Customer
) -> None:
    await archive_all(past.database, directory)
    recorder = RequestRecorder(past.database, waiting_records_max=10)

    recorder.record(customer.record(datetime.combine(days_ago(OLD_DAYS[0]), time(12), UTC)))
    await recorder.write()

    assert await stored(past.database, ArchivedTable.REQUESTS) == REQUESTS_PER_DAY


async def test_a_day_with_an_open_hold_stays(past: PastDays, directory: ArchiveFiles) -> None:
    day = days_ago(OLD_DAYS[0])
    await past.ledger.tamper(
        "DELETE FROM ledger_entries WHERE phase = 1 AND admitted_day = $1", day
    )

    await archive_all(past.database, directory)

    assert (ArchivedTable.LEDGER_ENTRIES, day) not in await archived(past.database)
    assert await stored(past.database, ArchivedTable.LEDGER_ENTRIES) == ENTRIES_PER_DAY + 2


async def test_retention_drops_no_day_that_is_not_archived(
    past: PastDays, directory: ArchiveFiles
) -> None:
    database = past.database

    async def remove_old() -> None:
        is_archived = partial(service.is_archived, database)
        job = activity.retention_job(
            database, SystemClock(), record_days=KEPT_DAYS, is_archived=is_archived
        )
        await job.run()
        await ledger_days.remove_old(database, entry_days=KEPT_DAYS, is_archived=is_archived)

    await remove_old()
    before = [await stored(database, table) for table in ArchivedTable]
    await archive_all(database, directory)
    await remove_old()

    assert before == [3 * REQUESTS_PER_DAY, 3 * ENTRIES_PER_DAY]
    assert [await stored(database, table) for table in ArchivedTable] == [
        REQUESTS_PER_DAY,
        ENTRIES_PER_DAY,
    ]


async def test_a_report_that_needs_single_entries_of_an_archived_day_says_so(
    past: PastDays, directory: ArchiveFiles
) -> None:
    await archive_all(past.database, directory)
    half_past = datetime.combine(days_ago(OLD_DAYS[0]), time(12, 30), UTC)
    question = CostQuery(
        subject=CostSubject.COSTS,
        start=int(half_past.timestamp()),
        width=Width.HOUR,
        only=CostFilter(project_ids=None, api_key_ids=None),
        grouping=frozenset(),
    )
    place = reports.first_place(question, None, now=datetime.now(UTC))
    assert place is not None

    with pytest.raises(DetailIsGone):
        async with past.database.transaction() as tx:
            await reports.read(tx, past.customer.organization_id, question, place, buckets_max=2)
