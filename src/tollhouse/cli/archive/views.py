"""Archived days as rows of a table."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from tollhouse.archive.types import ArchivedTable, DayManifest
from tollhouse.base.money import PicoUsd, to_decimal_string

DAY_COLUMNS: Final = ("table", "day", "rows", "usd", "size_bytes", "files")
DIFFERENCE_COLUMNS: Final = ("table", "day", "difference")
_MONEY: Final[Mapping[str, str]] = {
    ArchivedTable.REQUESTS: "cost_pico",
    ArchivedTable.LEDGER_ENTRIES: "posted_pico",
}


class ShownDay(Struct, frozen=True, kw_only=True):
    """An archived day; `sums` are exact, in tokens and pico-dollars."""

    object: Literal["archive.day"] = "archive.day"
    table: str
    day: str
    rows: int
    usd: str
    size_bytes: int
    files: int
    sums: dict[str, int]


class ShownDays(Struct, frozen=True, kw_only=True):
    """Archived days, oldest first."""

    object: Literal["list"] = "list"
    data: list[ShownDay]


class ShownDayDifference(Struct, frozen=True, kw_only=True):
    """A day whose files differ from what was recorded."""

    table: str
    day: str
    difference: str


class ArchiveVerification(Struct, frozen=True, kw_only=True):
    """The result of reading all files; `sound` means that nothing differs."""

    object: Literal["archive.verification"] = "archive.verification"
    sound: bool
    days: int
    rows: int
    data: list[ShownDayDifference]


def shown_day(manifest: DayManifest) -> ShownDay:
    """Return an archived day as a row."""
    return ShownDay(
        table=manifest.table,
        day=manifest.day.isoformat(),
        rows=manifest.total.rows,
        usd=to_decimal_string(PicoUsd(manifest.total.sums[_MONEY[manifest.table]])),
        size_bytes=manifest.size_bytes,
        files=len(manifest.files),
        sums=manifest.total.sums,
    )
