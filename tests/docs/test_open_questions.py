"""The register of open questions is complete, in order, and names a module for each answer."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
REGISTER = DOCS / "open-questions.md"
NOTES = DOCS / "architecture" / "design-notes.md"
SOURCE = Path(__file__).parents[2] / "src" / "tollhouse"
LAST_OF_THE_SPECIFICATION = 146
CELLS = 5
ROOMS = (
    "organizations projects keys sessions policies catalog ledger limits alerts activity"
    " reports archive"
)
UPPER = "backends evaluation inference api serving manage cli settings"
FOLDERS = set(f"base contract observability storage {ROOMS} {UPPER}".split())
TOP_MODULES = {"app.py"}
CONTENTS = re.compile(r"^\| \[([^]]+)\]\(#[a-z-]+\) \| (.*) \|$", re.MULTILINE)
MODULE = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.py)`")


def rows() -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for page in (REGISTER, NOTES)
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("| OQ-")
    ]


def sections() -> dict[str, list[int]]:
    """The numbers of the rows of each section that has rows."""
    found: dict[str, list[int]] = {}
    for section in REGISTER.read_text(encoding="utf-8").split("\n## ")[1:]:
        numbers = [int(number) for number in re.findall(r"^\| OQ-(\d+) ", section, re.MULTILINE)]
        if numbers:
            found[section.partition("\n")[0]] = numbers
    return found


def test_every_number_stands_exactly_once() -> None:
    numbers = sorted(row[0] for row in rows())
    assert len(numbers) >= LAST_OF_THE_SPECIFICATION
    assert numbers == sorted(f"OQ-{number:02d}" for number in range(1, len(numbers) + 1))


def test_rows_are_in_order_within_their_subject() -> None:
    assert sections()
    assert [name for name, numbers in sections().items() if numbers != sorted(numbers)] == []


def test_the_contents_list_the_rows_of_every_subject() -> None:
    text = REGISTER.read_text(encoding="utf-8")

    listed = {
        name: [
            number
            for first, last in re.findall(r"OQ-(\d+)(?: to (\d+))?", numbers)
            for number in range(int(first), int(last or first) + 1)
        ]
        for name, numbers in re.findall(
            r"^\| \[([^]]+)\]\(#[a-z-]+\) \| (.*) \|$", text, re.MULTILINE
        )
    }
    assert listed == sections()


def test_the_differences_stand_first_and_name_rows_that_exist() -> None:
    first = REGISTER.read_text(encoding="utf-8").split("\n## ")[1]
    known = {row[0] for row in rows()}

    assert first.startswith("The differences in one minute\n")
    named = re.findall(r"OQ-\d+", first)
    assert named
    assert [number for number in named if number not in known] == []


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
