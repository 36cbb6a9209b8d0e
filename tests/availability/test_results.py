"""The page with the figures is made of the rounds that are kept."""

from tests.availability.results import PAGE, page, read


def test_the_page_shows_the_rounds_that_are_kept() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert page(text, read()) == text
