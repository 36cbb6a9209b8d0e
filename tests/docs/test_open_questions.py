"""The register of open questions is complete, gapless, and names a module for each answer."""

import re
from pathlib import Path

REGISTER = Path(__file__).parents[2] / "docs" / "open-questions.md"
SOURCE = Path(__file__).parents[2] / "src" / "tollhouse"
LAST_OF_THE_SPECIFICATION = 146
CELLS = 5
ROOMS = "organizations projects keys policies catalog ledger limits activity reports"
UPPER = "backends evaluation inference api serving manage cli settings"
FOLDERS = set(f"base contract observability storage {ROOMS} {UPPER}".split())
TOP_MODULES = {"app.py"}
MODULE = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.py)`")


def rows() -> list[list[str]]:
    lines = REGISTER.read_text(encoding="utf-8").splitlines()
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in lines
        if line.startswith("| OQ-")
    ]


def test_every_number_stands_exactly_once_and_in_order() -> None:
    numbers = [row[0] for row in rows()]
    assert len(numbers) >= LAST_OF_THE_SPECIFICATION
    assert numbers == [f"OQ-{number:02d}" for number in range(1, len(numbers) + 1)]


def test_every_row_has_its_five_cells_filled() -> None:
    assert [row for row in rows() if len(row) != CELLS or not all(row)] == []


def test_every_row_begins_with_its_treatment() -> None:
    treatments = ("Adopt", "Configure", "Leave out")
    assert [row[0] for row in rows() if not row[2].startswith(treatments)] == []


def test_where_it_changes_is_a_module_that_exists() -> None:
    for row in rows():
        module = MODULE.fullmatch(row[4])
        assert module is not None, row
        top = module[1].split("/")[0]
        assert module[1] in TOP_MODULES or ("/" in module[1] and top in FOLDERS), row
        assert (SOURCE / module[1]).is_file(), row
