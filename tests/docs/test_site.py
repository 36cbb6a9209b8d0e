"""The site that `make docs` builds, as the gateway serves it and as the wheel has it."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tollhouse.api import static_files
from tollhouse.base.clock import SystemClock
from tollhouse.console.documentation import built_site
from tools.site import SIZE_MAX, Page, SiteProblem, anchored, collect, without_indentation

ROOT = Path(__file__).parents[2]
SETTINGS = ROOT / "zensical.toml"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site, built away from the checkout."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(SETTINGS, folder)
    shutil.copytree(ROOT / "docs", folder / "docs")
    program = Path(sys.executable).parent / "zensical"
    subprocess.run([program, "build", "--strict"], cwd=folder, check=True, capture_output=True)
    return folder / "build/site"


def test_the_start_page_is_served_and_the_site_is_small(built: Path, tmp_path: Path) -> None:
    size = collect(built, tmp_path / "static")

    served = static_files.read(tmp_path / "static", hashed_folders=())
    site = built_site(tmp_path / "static", SystemClock())
    assert site.find("/") == served["index.html"]
    assert site.find("/guides/limits/") == served["guides/limits/index.html"]
    assert size < SIZE_MAX


def test_pages_lose_indentation_where_it_does_not_count() -> None:
    page = "<p>\n\n    a <b>b</b>\n  </p>\n<pre>\n  kept\n\n</pre>\n\n<script>\n  kept\n</script>"

    assert without_indentation(page) == (
        "<p>\na <b>b</b>\n</p>\n<pre>\n  kept\n\n</pre>\n<script>\n  kept\n</script>"
    )


def test_a_row_of_an_open_question_has_its_number_as_anchor() -> None:
    row = "<tr>\n<td>OQ-59</td><td>OQ-60</td></tr>"

    assert anchored(row) == '<tr>\n<td id="oq-59">OQ-59</td><td>OQ-60</td></tr>'


def test_every_row_of_the_register_and_of_its_summaries_has_an_anchor(built: Path) -> None:
    page = anchored((built / "open-questions/index.html").read_text(encoding="utf-8"))

    anchors = re.findall(r'<t[rd] id="([\w-]+)"', page)
    linked = re.findall(r'href="#(oq-\d+)"', page)
    assert len(set(anchors)) == len(anchors)
    assert "the-differences-in-one-minute-76-133" in anchors
    assert {"oq-76", "oq-133"} <= set(linked) <= set(anchors)
    for summary in page.split("<h2 ")[1:3]:
        heading, *rows = re.findall(r"<tr.*>", summary)
        assert [row for row in rows if row == heading] == []


def test_every_page_of_the_navigation_is_in_it(built: Path, tmp_path: Path) -> None:
    collect(built, tmp_path / "static")

    served = set(static_files.read(tmp_path / "static", hashed_folders=()))
    guides = [path.stem for path in (ROOT / "docs/guides").glob("*.md")]
    assert [each for each in guides if f"guides/{each}/index.html" not in served] == []
    assert {name for name in served if name.startswith("reference/errors/")} == {
        "reference/errors/index.html"
    }


@pytest.mark.parametrize(
    ("element", "problem"),
    [
        ('<script src="https://cdn.example/a.js"></script>', "from another host"),
        ('<link rel="stylesheet" href="//cdn.example/a.css">', "from another host"),
        ('<img src="http://cdn.example/a.png">', "from another host"),
        ('<source srcset="https://cdn.example/a.webp">', "from another host"),
        ('<a href="nowhere/">', "which is not built"),
        ('<a href="data.bin">', "does not serve"),
    ],
)
def test_a_page_that_cannot_be_served_ends_the_build(
    tmp_path: Path, element: str, problem: str
) -> None:
    (tmp_path / "index.html").write_text(element)
    (tmp_path / "search.json").write_text("{}")
    (tmp_path / "data.bin").write_bytes(b"x")

    with pytest.raises(SiteProblem, match=problem):
        collect(tmp_path, tmp_path / "static")


def test_links_to_other_hosts_are_links_and_nothing_is_loaded_for_them() -> None:
    page = Page('<a href="https://example.com/">x</a><script>let a = 1;</script>')

    assert (page.links, page.loads, page.scripts) == (["https://example.com/"], [], ["let a = 1;"])


def test_the_wheel_has_the_site(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path)
    package = tmp_path / "src/tollhouse"
    static = package / "console/documentation"
    static.mkdir(parents=True)
    (package / "__init__.py").touch()
    (static / "index.html.gz").write_bytes(b"x")

    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", "dist"]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)

    (wheel,) = (tmp_path / "dist").iterdir()
    assert "tollhouse/console/documentation/index.html.gz" in zipfile.ZipFile(wheel).namelist()
