"""The recorded runs are what the page and its figure show."""

from xml.etree import ElementTree as ET

import pytest

from tests.endurance.plots import FIGURE, PAGE, figure, page, searches, stolen
from tests.fuzz import corpus
from tools.long_runs import LongRun


def test_page_and_figure_are_those_of_the_recorded_runs() -> None:
    text, drawing = page(PAGE.read_text("utf-8"))

    assert text == PAGE.read_text("utf-8")
    assert drawing == FIGURE.read_text("utf-8")


def test_every_line_of_a_plot_is_within_it() -> None:
    drawing = figure([("a title", "s", [[(0.0, 1.0), (10.0, 2.0)], [(5.0, 0.0)]])])

    lines = ET.fromstring(drawing).findall("{http://www.w3.org/2000/svg}polyline")  # noqa: S314 - our own
    assert [line.get("points") for line in lines] == ["250,39.0 760,8.0", "505,70.0"]


@pytest.mark.parametrize(
    ("shares", "text"),
    [
        pytest.param([], "", id="no round"),
        pytest.param([None, 0.1], "", id="not in every round"),
        pytest.param([0.1, 0.2], ", 15.0% of processor time stolen by the host", id="in each"),
    ],
)
def test_stolen_time_is_shown_if_every_round_recorded_it(
    shares: list[float | None], text: str
) -> None:
    assert stolen(shares) == text


def test_the_runs_of_a_search_are_added_up() -> None:
    target = corpus.TARGETS[0]
    runs = [_run(f"python -m tests.fuzz {target}", cases=1_000, seconds=90, findings=1)] * 2
    runs.append(_run("python -m tests.simulation run", cases=5, seconds=60, findings=0))

    rows = searches(runs)

    kept = len(corpus.kept(target))
    assert f"| `make fuzz`, `{target}` | 3 | 2,000 inputs, {kept} of them kept | 2 |" in rows
    assert rows[-1] == "| `make simulation` | 1 | 5 seeds | 0 |"
    assert len(rows) == 2 + len(corpus.TARGETS) + 1


def _run(command: str, *, cases: int, seconds: int, findings: int) -> LongRun:
    return LongRun(
        date="2026-11-16T09:45:54Z",
        commit="b7e752ff9ce6",
        command=command,
        first_seed=0,
        last_seed=0,
        seconds=seconds,
        cases=cases,
        findings=findings,
    )
