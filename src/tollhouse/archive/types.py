"""Types of the archive: its tables, their columns, and the sums that prove a day complete."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import Enum, StrEnum
from typing import Final

from msgspec import Struct


class ArchivedTable(StrEnum):
    """The tables whose days are archived."""

    REQUESTS = "requests"
    LEDGER_ENTRIES = "ledger_entries"


class ColumnType(Enum):
    """The type of a column in files. An ID is text, so that every reader can compare it."""

    ID = "id"
    TEXT = "text"
    DAY = "day"
    INSTANT = "instant"
    INTEGER = "integer"
    NUMBER = "number"
    FLAG = "flag"


@dataclass(frozen=True, kw_only=True, slots=True)
class TableForm:
    """The columns of a table, its key without the day, and the columns that are summed."""

    day: str
    columns: Mapping[str, ColumnType]
    key: tuple[str, ...]
    summed: tuple[str, ...]


_I, _T, _N = ColumnType.ID, ColumnType.TEXT, ColumnType.INTEGER
_USED: Final = (
    *("input_tokens", "cached_input_tokens", "output_tokens", "images"),
    "cache_write_tokens",
)
_COSTS: Final = (
    *("input_pico", "cached_input_pico", "output_pico", "image_pico", "request_pico"),
    "cache_write_pico",
)

FORMS: Final[Mapping[str, TableForm]] = {
    ArchivedTable.REQUESTS: TableForm(
        day="day",
        columns={
            "organization_id": _I,
            "day": ColumnType.DAY,
            "request_id": _I,
            "project_id": _I,
            "api_key_id": _I,
            "operation": _T,
            "started_at": ColumnType.INSTANT,
            "status": _N,
            "error_code": _T,
            "error_param": _T,
            "failed_by": _T,
            "model": _T,
            "backend": _T,
            "replica": _T,
            "is_stream": ColumnType.FLAG,
            "input_tokens": _N,
            "cached_input_tokens": _N,
            "output_tokens": _N,
            "is_estimated": ColumnType.FLAG,
            "cost_pico": _N,
            "queue_ms": ColumnType.NUMBER,
            "admission_ms": ColumnType.NUMBER,
            "judging_ms": ColumnType.NUMBER,
            "first_byte_ms": ColumnType.NUMBER,
            "total_ms": ColumnType.NUMBER,
            "requested_model": _T,
            "dropped_tools": _T,
            "attempts": _T,
            "label": _T,
        },
        key=("organization_id", "request_id"),
        summed=("input_tokens", "cached_input_tokens", "output_tokens", "cost_pico"),
    ),
    ArchivedTable.LEDGER_ENTRIES: TableForm(
        day="admitted_day",
        columns={
            "organization_id": _I,
            "admitted_day": ColumnType.DAY,
            "reservation_id": _I,
            "phase": _N,
            "kind": _T,
            "is_backfill": ColumnType.FLAG,
            "admitted_at": ColumnType.INSTANT,
            "recorded_at": ColumnType.INSTANT,
            "deadline_at": ColumnType.INSTANT,
            "project_id": _I,
            "api_key_id": _I,
            "model": _T,
            "price_revision": _N,
            "instance_id": _I,
            "bills_without_answer": ColumnType.FLAG,
            "held_pico": _N,
            "posted_pico": _N,
            "excess_pico": _N,
            "unknown_pico": _N,
            "input_tokens": _N,
            "cached_input_tokens": _N,
            "output_tokens": _N,
            "images": _N,
            "input_pico": _N,
            "cached_input_pico": _N,
            "output_pico": _N,
            "image_pico": _N,
            "request_pico": _N,
            "delivered_tokens": _N,
            "is_estimated": ColumnType.FLAG,
            "operator_pays": _T,
            "cache_write_tokens": _N,
            "cache_write_pico": _N,
        },
        key=("organization_id", "reservation_id", "phase"),
        summed=(
            *("held_pico", "posted_pico", "excess_pico", "unknown_pico"),
            *_USED,
            *_COSTS,
        ),
    ),
}


class DaySums(Struct, frozen=True, kw_only=True):
    """The number of rows, and the sum of each summed column."""

    rows: int
    sums: dict[str, int]


SumsByOrganization = dict[str, DaySums]


class ArchivedFile(Struct, frozen=True, kw_only=True):
    """One Parquet file of a day, with the SHA-256 of its bytes."""

    name: str
    rows: int
    size_bytes: int
    sha256: str


class DayManifest(Struct, frozen=True, kw_only=True):
    """What a day's folder must contain. Written after its files, beside them."""

    table: str
    day: date
    total: DaySums
    files: list[ArchivedFile]

    @property
    def size_bytes(self) -> int:
        """The size of all files."""
        return sum(file.size_bytes for file in self.files)
