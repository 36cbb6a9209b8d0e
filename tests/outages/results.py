"""The record of all cells, in `docs/evidence/outages.jsonl`, and the table that is made of it.

`python -m tests.outages.results` writes the table.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from tests.outages.cells import Cell, Layout, every_cell
from tollhouse.base.clock import SystemClock
from tools import long_runs

PAGE: Final = long_runs.ROOT / "docs" / "availability.md"
BEGIN, END = "<!-- outages: begin -->\n", "<!-- outages: end -->\n"
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
    return {result.cell for result in results() if result.commit == commit}


def results() -> list[CellResult]:
    """Return all records, the oldest first."""
    lines = RECORDS.read_bytes().splitlines() if RECORDS.exists() else []
    return [msgspec.json.decode(line, type=CellResult) for line in lines]


def write(results: Iterable[CellResult]) -> None:
    """Append the results of cells."""
    date, commit = SystemClock().now().strftime("%Y-%m-%dT%H:%M:%SZ"), long_runs.current_commit()
    with RECORDS.open("ab") as records:
        for result in results:
            line = msgspec.structs.replace(result, date=date, commit=commit)
            records.write(msgspec.json.encode(line) + b"\n")


def page(text: str) -> str:
    """Return the text of the page with the table of the last result of each cell."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return before + BEGIN + "\n" + "\n".join(_table()) + "\n\n" + END + after


def _table() -> Iterator[str]:
    last = {result.cell: result for result in results()}
    rows: defaultdict[str, defaultdict[Layout, list[CellResult]]]
    rows = defaultdict(lambda: defaultdict(list))
    for cell in every_cell():
        if (result := last.get(cell.name)) is not None:
            rows[_kind(cell)][cell.layout].append(result)
    yield "| fault | another replica | a fallback | a fallback in another dialect |"
    yield "|---|" + "---|" * len(Layout)
    for kind, by_layout in rows.items():
        cells = (_worst(by_layout[layout]) for layout in Layout)
        yield f"| {kind} | " + " | ".join(cells) + " |"


def _kind(cell: Cell) -> str:
    if cell.is_billed:
        return f"{cell.fault}, bills without answer"
    return f"{cell.fault}, default times" if cell.has_default_seconds else cell.fault


def _worst(found: Sequence[CellResult]) -> str:
    """Return the worst figures of all forms of callers."""
    if not found:
        return ""
    answered, later = (
        f"{100 * min(shares):.1f}%"
        for shares in ([one.answered for one in found], [one.answered_later for one in found])
    )
    sick = [one.sick_share for one in found if one.sick_share is not None]
    back = [one.back_seconds for one in found if one.back_seconds is not None]
    shares = f"; {100 * max(sick):.1f}% sick" if sick else ""
    return f"{answered}, then {later}{shares}" + (f"; back in {max(back):.0f} s" if back else "")


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), encoding="utf-8")
