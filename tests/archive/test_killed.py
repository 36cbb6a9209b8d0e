"""`kill -9` at any step of a run: the next run goes on, and each row is archived once."""

import os
from pathlib import Path

import pytest

from tests.archive.killed_run import run_and_die
from tests.archive.past_days import OLD_DAYS, REQUESTS_PER_DAY, archived, past_days
from tests.ledger.invariants import assert_conserved
from tests.support import seeds
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.archive import service
from tollhouse.archive.files import ArchiveFiles
from tollhouse.archive.types import ArchivedTable

ROUNDS = int(os.environ.get("TOLLHOUSE_ARCHIVE_ROUNDS", "1"))
KILLS_MAX = 8
TURNS = (10, 90)
"""A run that is not killed takes more than 100 turns."""
NEVER = 1_000_000


def unfinished(folder: Path) -> list[Path]:
    return list(folder.rglob("*.unfinished"))


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(ROUNDS))
async def test_killed_runs_lose_no_row_and_write_none_twice(
    org: OrganizationFixture, database_url: str, tmp_path: Path, number: int
) -> None:
    chance, url = seeds.chance(number), (tmp_path / "archive").as_uri()
    past = await past_days(org, database_url)
    killed = 0

    while (
        killed < KILLS_MAX and await run_and_die(database_url, url, chance.randrange(*TURNS)) != 0
    ):
        killed += 1
    assert await run_and_die(database_url, url, NEVER) == 0

    days, files = await archived(past.database), ArchiveFiles(url)
    assert killed > 0
    assert len(days) == len(ArchivedTable) * len(OLD_DAYS)
    for day in days.values():
        assert await service.difference(past.database, files, day) is None
    requests = [day for (table, _), day in days.items() if table is ArchivedTable.REQUESTS]
    assert [day.total.rows for day in requests] == [REQUESTS_PER_DAY] * len(OLD_DAYS)
    assert not unfinished(tmp_path)
    await assert_conserved(past.database)
