"""Files of a day whose export broke off and began again, as on a standby that cancels reads."""

import gc
from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path
from uuid import UUID

import pytest

from tollhouse.archive.files import ArchiveFiles, Rows
from tollhouse.archive.types import FORMS, ArchivedTable, DayManifest, DaySums
from tollhouse.storage.errors import DatabaseUnavailable

DAY = date(2026, 1, 1)
COLUMNS = list(FORMS[ArchivedTable.REQUESTS].columns)


def group(number: int) -> Rows:
    known: dict[str, object] = {
        "organization_id": str(UUID(int=1)),
        "day": DAY,
        "request_id": str(UUID(int=number)),
    }
    return [[known.get(name) for name in COLUMNS]]


async def groups(count: int, *, breaks_off: bool) -> AsyncIterator[Rows]:
    for number in range(count):
        yield group(number)
    if breaks_off:
        raise DatabaseUnavailable


@pytest.mark.parametrize("groups_before", [1, 2])
async def test_a_broken_export_changes_nothing_of_the_next(
    tmp_path: Path, groups_before: int
) -> None:
    files = ArchiveFiles((tmp_path / "archive").as_uri())
    table = ArchivedTable.REQUESTS

    try:
        await files.write(table, DAY, groups(groups_before, breaks_off=True))
    except DatabaseUnavailable:
        written = await files.write(table, DAY, groups(3, breaks_off=False))
    else:
        raise AssertionError("nothing was raised")
    gc.collect()

    manifest = DayManifest(table=table, day=DAY, total=DaySums(rows=3, sums={}), files=written)
    assert files.changed_file(manifest) is None
    assert [file.rows for file in written] == [3]
