"""The architecture pages and the glossary name only modules that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/tollhouse"
PAGES = [
    ROOT / "docs/architecture.md",
    ROOT / "docs/glossary.md",
    *sorted((ROOT / "docs/architecture").glob("*.md")),
]
_MODULE = re.compile(r"`([a-z_/]+(?:\.py|/))`")
NOT_OF_THE_PACKAGE = ("tests/", "tools/", "src/")


def modules(page: Path) -> set[str]:
    found = _MODULE.findall(page.read_text())
    return {name for name in found if not name.startswith(NOT_OF_THE_PACKAGE)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_module_that_is_named_exists(page: Path) -> None:
    named = modules(page)

    assert named
    assert {name for name in named if not (PACKAGE / name).exists()} == (
        {"judge/", "content/"} & named
    )
