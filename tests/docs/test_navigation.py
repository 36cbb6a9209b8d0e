"""The site has every page in its navigation, and the console's drawing and colours."""

import re
import tomllib
from pathlib import Path
from typing import TypeAlias

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
COLOUR = re.compile(r"#[0-9a-f]{6}\b")
REACHED_OTHERWISE = ("reference/errors/", "evidence/")
"""Pages of errors are reached from their index, evidence from the repository."""
OPENING_IN_OTHER_WORDS = {"console.md", "requests.md"}
Entry: TypeAlias = "str | dict[str, Entry] | list[Entry]"


def listed(entry: Entry) -> list[str]:
    """The pages of an entry of the navigation, in order."""
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    return [page for part in parts for page in listed(part)]


def navigation() -> list[Entry]:
    settings = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    return settings["project"]["nav"]


def test_every_page_stands_once_in_the_navigation() -> None:
    pages = [
        name
        for name in (path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
        if not name.startswith(REACHED_OTHERWISE)
    ]

    assert sorted(listed(navigation())) == sorted([*pages, "reference/errors/index.md"])


@pytest.mark.parametrize("folder", ["guides", "runbooks"])
def test_a_guide_begins_with_what_its_reader_will_have(folder: str) -> None:
    openings = {
        path.name: path.read_text(encoding="utf-8").split("\n\n")[1]
        for path in (DOCS / folder).glob("*.md")
        if path.name not in OPENING_IN_OTHER_WORDS
    }

    promised = ("At the end of this page ", "At the end of each of these pages ")
    assert [name for name, text in openings.items() if not text.startswith(promised)] == []


def test_tutorials_guides_reference_and_explanation_are_apart() -> None:
    assert [title for entry in navigation() if isinstance(entry, dict) for title in entry] == [
        "Start",
        "Tutorials",
        "How-to guides",
        "Reference",
        "Explanation",
    ]


def test_the_site_has_the_mark_of_the_console() -> None:
    assert (DOCS / "images/mark.svg").read_bytes() == (ROOT / "console/src/mark.svg").read_bytes()


def test_the_site_has_the_colours_of_the_console() -> None:
    tokens = (ROOT / "console/src/styles/tokens.css").read_text(encoding="utf-8")
    used = set(COLOUR.findall((DOCS / "stylesheets/site.css").read_text(encoding="utf-8")))

    assert used
    assert used - set(COLOUR.findall(tokens)) == set()


def test_links_of_every_page_lead_somewhere() -> None:
    links = [
        (page, link)
        for page in DOCS.rglob("*.md")
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    ]

    assert links
    assert [each for each in links if not (each[0].parent / each[1]).exists()] == []
