"""The pages that are made from the program are complete."""

import re
import tomllib
from pathlib import Path

from tollhouse.app import ROUTES
from tollhouse.contract.operations import OPERATIONS
from tools.reference.errors import by_code

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"


def test_every_code_has_a_page_and_a_remedy_and_no_remedy_is_left_over() -> None:
    codes = set(by_code())
    remedies = tomllib.loads((ROOT / "tools/reference/remedies.toml").read_text(encoding="utf-8"))

    assert set(remedies) == codes
    assert {path.stem for path in (REFERENCE / "errors").glob("*.md")} == codes | {"index"}


def test_every_route_that_a_remedy_names_is_served() -> None:
    remedies = (ROOT / "tools/reference/remedies.toml").read_text(encoding="utf-8")
    served = {f"{each.operation.method} {each.operation.path}" for each in ROUTES}

    named = re.findall(r"\b(?:GET|POST|PUT|PATCH|DELETE) /[^\s`]*", remedies)
    assert named
    assert [route for route in named if route not in served] == []


def test_every_operation_is_described() -> None:
    text = (REFERENCE / "operations.md").read_text(encoding="utf-8")

    missing = [one.id for one in OPERATIONS if f"`{one.method} {one.path}`: `{one.id}`" not in text]
    assert missing == []


def test_every_guide_is_in_the_navigation() -> None:
    navigation = (ROOT / "zensical.toml").read_text(encoding="utf-8")

    guides = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs/guides").glob("*.md")]
    assert [str(guide) for guide in guides if f'"{guide}"' not in navigation] == []
