"""Windows show a judge all of a content, however long it is."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judge.cases import saying
from tollhouse.base.policies import Direction
from tollhouse.evaluation.content.windows import (
    OVERLAP_SHARE,
    WINDOW_BYTES_MIN,
    RenderedContent,
    least_bytes,
)
from tollhouse.evaluation.types import Content, ContentPart, Window

LONGEST_LABEL = "messages[1999999] assistant tool_calls[1999999], text 1999999, decoded"

LETTERS = st.characters(exclude_categories=["Cs"])
HEAVY = st.sampled_from(['"', "<", "\x00", "\U0001f9e0", "\\", "a"])


@st.composite
def contents(draw: st.DrawFn) -> Content:
    """Short and long parts, some with many escaped characters."""
    short = st.text(LETTERS, max_size=30)
    pattern, times = st.text(HEAVY, max_size=10), st.integers(1, 2_000)
    texts = [
        draw(short) if draw(st.booleans()) else draw(pattern) * draw(times)
        for _ in range(draw(st.integers(0, 20)))
    ]
    parts = tuple(ContentPart(LONGEST_LABEL, text) for text in texts)
    return Content(direction=Direction.REQUEST, parts=parts, opening=1)


SIZES = st.integers(WINDOW_BYTES_MIN, 8_192)


def shown(window: Window) -> str:
    return "".join(part["text"] for part in json.loads(window.text)["parts"])


def whole(content: Content) -> str:
    return "".join(part.text for part in content.parts)


@given(contents(), SIZES)
def test_windows_together_are_all_of_it(content: Content, bytes_max: int) -> None:
    windows = RenderedContent(content).windows(bytes_max=bytes_max)

    assert windows[0].start == 0
    assert windows[-1].end == len(whole(content))
    assert all(before.start < after.start <= before.end for before, after in pairwise(windows))
    for window in windows:
        assert shown(window) == whole(content)[window.start : window.end]


@given(contents(), SIZES)
def test_no_window_is_longer_than_it_may_be(content: Content, bytes_max: int) -> None:
    for window in RenderedContent(content).windows(bytes_max=bytes_max):
        assert len(window.text.encode()) <= bytes_max


@given(contents(), SIZES)
def test_every_phrase_as_long_as_an_overlap_is_whole_in_some_window(
    content: Content, bytes_max: int
) -> None:
    windows = RenderedContent(content).windows(bytes_max=bytes_max)

    for before, after in pairwise(windows):
        assert before.end - after.start >= (before.end - before.start) // OVERLAP_SHARE


@given(contents(), SIZES)
def test_a_window_that_is_too_long_can_be_halved_without_loss(
    content: Content, bytes_max: int
) -> None:
    rendered = RenderedContent(content)
    for window in rendered.windows(bytes_max=bytes_max):
        halves = rendered.halves(window)
        if halves:
            assert (halves[0].start, halves[-1].end) == (window.start, window.end)
            assert all(before.end >= after.start for before, after in pairwise(halves))
            assert all(len(half.text.encode()) * 2 <= len(window.text.encode()) for half in halves)


def test_halving_ends() -> None:
    rendered = RenderedContent(saying("a" * 100_000))
    (window,) = rendered.windows(bytes_max=1_000_000)

    depth = 0
    while halves := rendered.halves(window):
        window, depth = halves[0], depth + 1

    assert depth < 10


def test_a_phrase_across_two_messages_is_whole_in_some_window() -> None:
    """A cut at the end of a message would hide a sentence that two messages form together."""
    texts = ["x" * 900 + "how to bake ", "bread" + "y" * 900]

    windows = RenderedContent(saying(*texts)).windows(bytes_max=1_024)

    assert len(windows) > 1
    assert any("how to bake bread" in shown(window) for window in windows)


@pytest.mark.parametrize("content", [saying(), saying(""), saying("", "")])
def test_nothing_is_judged_too(content: Content) -> None:
    (window,) = RenderedContent(content).windows(bytes_max=1_024)

    assert json.loads(window.text) == {"direction": "request", "parts": []}


def test_the_form_of_a_window() -> None:
    (window,) = RenderedContent(saying("What is <this>?", "Bread.")).windows(bytes_max=1_024)

    assert window.text == (
        '{"direction":"request","parts":['
        '{"part":"messages[0] user","text":"What is \\u003cthis\\u003e?"},'
        '{"part":"messages[1] user","text":"Bread."}]}'
    )


@pytest.mark.parametrize("text", ["some words ", "<", "[a]", "\U0001f9e0", 'a"'])
def test_windows_are_used(text: str) -> None:
    """Each costs a reading of the judge for every question."""
    *full, _ = RenderedContent(saying(text * 20_000)).windows(bytes_max=8_192)

    assert full
    assert all(len(window.text.encode()) > 0.95 * 8_192 for window in full)


@given(contents())
def test_a_lower_bound_of_its_length_is_one(content: Content) -> None:
    parts = [part for part in content.parts if part.text]

    assert sum(map(least_bytes, parts)) <= len(RenderedContent(content).text.encode())
