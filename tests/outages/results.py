"""The record of all cells, in `docs/evidence/outages.jsonl`."""

from collections.abc import Iterable
from typing import Final

import msgspec

from tollhouse.base.clock import SystemClock
from tools import long_runs

RECORDS: Final = long_runs.ROOT / "docs" / "evidence" / "outages.jsonl"


class CellResult(msgspec.Struct, frozen=True, kw_only=True):
    """What callers of one cell received. `later` counts from the sixth second on."""

    cell: str
    calls: int
    answered: float
    answered_later: float
    sick_share: float | None
    back_seconds: float | None
    date: str = ""
    commit: str = ""


def recorded() -> set[str]:
    """Return the cells that this commit has a record of."""
    commit = long_runs.current_commit()
    lines = RECORDS.read_bytes().splitlines() if RECORDS.exists() else []
    found = (msgspec.json.decode(line, type=CellResult) for line in lines)
    return {result.cell for result in found if result.commit == commit}


def write(results: Iterable[CellResult]) -> None:
    """Append the results of cells."""
    date, commit = SystemClock().now().strftime("%Y-%m-%dT%H:%M:%SZ"), long_runs.current_commit()
    with RECORDS.open("ab") as records:
        for result in results:
            line = msgspec.structs.replace(result, date=date, commit=commit)
            records.write(msgspec.json.encode(line) + b"\n")
