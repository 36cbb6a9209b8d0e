"""Exported days: each row once, equal to the database, also after kills and late changes."""

import os
from collections.abc import AsyncIterator, Generator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.archive.exported_days import (
    AMOUNT,
    DAYS,
    RECORDS,
    export,
    finished_days,
    settings_with,
    sums,
)
from tests.archive.killed_run import run_and_die
from tests.archive.s3_server import running_s3
from tests.archive.test_killed import unfinished
from tests.ledger.past import days_ago, enter_past
from tests.support import seeds
from tests.support.organization_fixture import OrganizationFixture
from tollhouse import nightly_export
from tollhouse.archive.errors import ExportNotConfigured
from tollhouse.archive.exporting import ExportRange
from tollhouse.archive.files import ArchiveFiles, Rows
from tollhouse.archive.types import ExportedTable
from tollhouse.observability import registry
from tollhouse.settings import ExportSettings

ROUNDS = int(os.environ.get("TOLLHOUSE_ARCHIVE_ROUNDS", "1"))
KILLS_MAX = 5
TURNS = (10, 150)
NEVER = 1_000_000
COST = len(DAYS) * 3 * AMOUNT


@pytest.fixture(params=["directory", "s3"])
def url(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[str]:
    if request.param == "directory":
        yield (tmp_path / "exports").as_uri()
    else:
        with running_s3(monkeypatch) as address:
            yield address


async def test_a_day_is_written_once_with_its_costs_and_records(
    org: OrganizationFixture, database_url: str, url: str
) -> None:
    ledger = await finished_days(org, database_url)
    settings = settings_with(database_url, url)

    written = await export(ledger.org.database, settings)

    costs = [day for day in written if day.table == ExportedTable.COSTS]
    records = [day for day in written if day.table == ExportedTable.REQUESTS]
    assert [day.day for day in costs] == [days_ago(days) for days in DAYS]
    assert sum(day.total.sums["posted_pico"] for day in costs) == COST
    assert [day.total.rows for day in records] == [RECORDS] * len(DAYS)
    for day in written:
        assert ArchiveFiles(url).manifest(day.table, day.day) == day
    assert await export(ledger.org.database, settings) == []


async def test_duckdb_reads_the_sums_of_the_ledger(
    org: OrganizationFixture, database_url: str, tmp_path: Path
) -> None:
    ledger = await finished_days(org, database_url)
    settings = settings_with(database_url, tmp_path.as_uri())

    await export(ledger.org.database, settings)

    assert sums(str(tmp_path), "costs", "posted_pico") == (2 * len(DAYS), COST)
    assert sums(str(tmp_path), "requests", "cost_pico")[0] == RECORDS * len(DAYS)


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(ROUNDS))
async def test_killed_runs_lose_no_row_and_write_none_twice(
    org: OrganizationFixture, database_url: str, tmp_path: Path, number: int
) -> None:
    chance, url = seeds.chance(number), (tmp_path / "exports").as_uri()
    await finished_days(org, database_url)
    killed = 0

    while (
        killed < KILLS_MAX
        and await run_and_die("export", database_url, url, chance.randrange(*TURNS)) != 0
    ):
        killed += 1
    assert await run_and_die("export", database_url, url, NEVER) == 0

    assert killed > 0
    assert sums(f"{tmp_path}/exports", "costs", "posted_pico") == (2 * len(DAYS), COST)
    assert sums(f"{tmp_path}/exports", "requests", "cost_pico")[0] == RECORDS * len(DAYS)
    assert not unfinished(tmp_path)


async def test_a_day_with_an_open_hold_waits(
    org: OrganizationFixture, database_url: str, tmp_path: Path
) -> None:
    ledger = await finished_days(org, database_url)
    settings = settings_with(database_url, tmp_path.as_uri())
    open_day = days_ago(DAYS[1])
    database = ledger.org.database
    async with database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO ledger_entries (
                organization_id, admitted_day, reservation_id, phase, kind, admitted_at,
                deadline_at, project_id, api_key_id, model, price_revision, instance_id,
                bills_without_answer, held_pico)
            SELECT organization_id, admitted_day, gen_random_uuid(), phase, kind, admitted_at,
                   deadline_at, project_id, api_key_id, model, price_revision, instance_id,
                   bills_without_answer, held_pico
              FROM ledger_entries
             WHERE admitted_day = $1 AND phase = 0
             LIMIT 1
            """,
            open_day,
        )

    written = await export(database, settings)

    assert {day.day for day in written} == {days_ago(DAYS[0]), days_ago(DAYS[2])}


async def test_a_changed_day_is_written_again_by_the_next_night(
    org: OrganizationFixture, database_url: str, tmp_path: Path
) -> None:
    ledger = await finished_days(org, database_url)
    settings = settings_with(database_url, tmp_path.as_uri())
    database = ledger.org.database
    await export(database, settings)
    for days in DAYS:
        await enter_past(ledger, days_ago(days), AMOUNT)

    same_night = await export(database, settings)
    async with database.transaction() as tx:
        await tx.execute("UPDATE exported_days SET checked_at = checked_at - interval '1 day'")
    next_night = await export(database, settings)

    assert same_night == []
    assert [(day.table, day.day, day.total.rows) for day in next_night] == [
        (ExportedTable.COSTS, days_ago(days), 3) for days in DAYS[1:]
    ]
    assert sums(str(tmp_path), "costs", "posted_pico")[1] == COST + 2 * AMOUNT


async def test_a_range_is_compared_and_written_at_once(
    org: OrganizationFixture, database_url: str, tmp_path: Path
) -> None:
    ledger = await finished_days(org, database_url)
    settings = settings_with(database_url, tmp_path.as_uri())
    database, old = ledger.org.database, days_ago(DAYS[0])
    await export(database, settings)
    await enter_past(ledger, old, AMOUNT)

    written = await nightly_export.export(
        database, None, settings, ExportRange(first=old, last=old)
    )

    assert [(day.table, day.day) for day in written] == [(ExportedTable.COSTS, old)]
    assert sums(str(tmp_path), "costs", "posted_pico")[1] == COST + AMOUNT


async def test_a_day_whose_files_were_lost_is_written_again(
    org: OrganizationFixture, database_url: str, tmp_path: Path
) -> None:
    ledger = await finished_days(org, database_url)
    settings, database = settings_with(database_url, tmp_path.as_uri()), ledger.org.database
    first = await export(database, settings)
    lost, without_manifest, *_ = [day for day in first if day.table == ExportedTable.COSTS]
    (tmp_path / f"costs/day={lost.day}/part-00000.parquet").unlink()
    (tmp_path / f"costs/day={without_manifest.day}/manifest.json").unlink()

    written = await nightly_export.export(
        database, None, settings, ExportRange(first=lost.day, last=without_manifest.day)
    )

    assert [day for day in written if day.total.rows] == [lost, without_manifest]
    assert all(ArchiveFiles(tmp_path.as_uri()).is_published(day) for day in first)


async def test_a_day_has_no_manifest_while_it_is_written_again(
    org: OrganizationFixture, database_url: str, tmp_path: Path
) -> None:
    ledger = await finished_days(org, database_url)
    (day, *_) = await export(ledger.org.database, settings_with(database_url, tmp_path.as_uri()))
    manifest = tmp_path / day.table / f"day={day.day}" / "manifest.json"
    seen: list[bool] = []

    async def no_rows() -> AsyncIterator[Rows]:
        seen.append(manifest.exists())
        return
        yield

    await ArchiveFiles(tmp_path.as_uri()).write(day.table, day.day, no_rows())

    assert seen == [False]


async def test_the_job_exports_in_a_process_of_its_own(
    org: OrganizationFixture, database_url: str, tmp_path: Path
) -> None:
    await finished_days(org, database_url)
    settings, url = settings_with(database_url, tmp_path.as_uri()), tmp_path.as_uri()

    await nightly_export.export_job(settings, org.database, url).run()

    assert sums(str(tmp_path), "costs", "posted_pico") == (2 * len(DAYS), COST)
    newest = max(day.name for day in (tmp_path / "costs").iterdir()).removeprefix("day=")
    end = datetime.fromisoformat(f"{newest}T00:00:00Z") + timedelta(days=1)
    lines = registry.exposition(None).decode().splitlines()
    (value,) = [line.split()[1] for line in lines if line.startswith("tollhouse_exported_until_")]
    assert float(value) == end.timestamp()


async def test_a_job_that_fails_says_so(org: OrganizationFixture, database_url: str) -> None:
    url = "file:///proc/no/such/place"
    job = nightly_export.export_job(settings_with(database_url, url), org.database, url)
    await finished_days(org, database_url)

    with pytest.raises(nightly_export.ExportFailed, match="code 1"):
        await job.run()


async def test_without_an_address_nothing_is_exported(
    org: OrganizationFixture, database_url: str, tmp_path: Path
) -> None:
    settings = settings_with(database_url, tmp_path.as_uri())
    without = type(settings)(
        database=settings.database, secrets=settings.secrets, exports=ExportSettings()
    )

    with pytest.raises(ExportNotConfigured):
        await export(org.database, without)
