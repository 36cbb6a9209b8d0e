"""The recorded runs are what the page and its figure show."""

from xml.etree import ElementTree as ET

from tests.endurance.plots import FIGURE, PAGE, figure, page


def test_page_and_figure_are_those_of_the_recorded_runs() -> None:
    text, drawing = page(PAGE.read_text("utf-8"))

    assert text == PAGE.read_text("utf-8")
    assert drawing == FIGURE.read_text("utf-8")


def test_every_line_of_a_plot_is_within_it() -> None:
    drawing = figure([("a title", "s", [[(0.0, 1.0), (10.0, 2.0)], [(5.0, 0.0)]])])

    lines = ET.fromstring(drawing).findall("{http://www.w3.org/2000/svg}polyline")  # noqa: S314 - our own
    assert [line.get("points") for line in lines] == ["250,39.0 760,8.0", "505,70.0"]
