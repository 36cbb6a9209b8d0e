"""A streamed answer is judged as if it had come whole, however it was cut."""

from itertools import groupby
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tollhouse.backends.types import (
    FunctionDelta,
    ToolCallDelta,
    UpstreamChunk,
    UpstreamChunkChoice,
    UpstreamCompletion,
    UpstreamDelta,
    UpstreamUsage,
)
from tollhouse.evaluation.content.rendering import completion_content
from tollhouse.evaluation.content.stream_accumulator import StreamAccumulator
from tollhouse.evaluation.types import Content, ContentPart

CHANNELS: tuple[str, ...] = (
    "content",
    "refusal",
    "reasoning",
    "arguments 0",
    "arguments 1",
    "function",
)
FINISH_REASONS = st.sampled_from([None, "stop", "length", "tool_calls"])
USAGES = st.sampled_from([None, UpstreamUsage(prompt_tokens=3, completion_tokens=9)])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)

Place = tuple[int, str]


def piece(
    place: Place, text: str, finish_reason: str | None, usage: UpstreamUsage | None
) -> UpstreamChunk:
    """A record that adds some text to one channel of one choice, and may end it and report."""
    index, channel = place
    if channel == "function":
        delta = UpstreamDelta(function_call=FunctionDelta(arguments=text))
    elif channel.startswith("arguments"):
        call = ToolCallDelta(index=int(channel[-1]), function=FunctionDelta(arguments=text))
        delta = UpstreamDelta(tool_calls=[call])
    else:
        delta = msgspec.structs.replace(UpstreamDelta(), **{channel: text})
    choice = UpstreamChunkChoice(index=index, delta=delta, finish_reason=finish_reason)
    return UpstreamChunk(choices=[choice], usage=usage)


def call_numbers(chunks: list[UpstreamChunk], index: int) -> list[int]:
    """The calls of one choice in the order of their first pieces, as callers get them."""
    choices = [choice for chunk in chunks for choice in chunk.choices if choice.index == index]
    numbers = [call.index for choice in choices for call in choice.delta.tool_calls or ()]
    return list(dict.fromkeys(numbers))


def whole(texts: dict[Place, str], chunks: list[UpstreamChunk]) -> Content:
    """The same answer in one piece."""
    choices: list[dict[str, Any]] = []
    for index, places in groupby(sorted(texts), key=lambda place: place[0]):
        said = {channel: texts[index, channel] for _, channel in places}
        calls = [
            {"id": "", "function": {"name": "", "arguments": said[f"arguments {number}"]}}
            for number in call_numbers(chunks, index)
        ]
        message: dict[str, Any] = {
            name: said[name] for name in ("content", "refusal", "reasoning") if name in said
        }
        message["tool_calls"] = calls
        if "function" in said:
            message["function_call"] = {"name": "", "arguments": said["function"]}
        choices.append({"index": index, "message": message})
    return completion_content(msgspec.convert({"choices": choices}, UpstreamCompletion))


def accumulator(chunks: list[UpstreamChunk]) -> Content:
    accumulating = StreamAccumulator()
    for chunk in chunks:
        accumulating.add([chunk])
    return accumulating.content()


@st.composite
def interleavings(draw: st.DrawFn) -> tuple[dict[Place, str], list[UpstreamChunk]]:
    """Texts of several choices and channels, cut anywhere, the pieces in any order between them.

    Any piece may carry `finish_reason` and usage.
    """
    places = st.tuples(st.integers(0, 2), st.sampled_from(CHANNELS))
    texts = draw(st.dictionaries(places, TEXT, min_size=1, max_size=8))
    left = dict(texts)
    chunks: list[UpstreamChunk] = []
    while left:
        place = draw(st.sampled_from(sorted(left)))
        size = draw(st.integers(1, len(left[place])))
        chunks.append(piece(place, left[place][:size], draw(FINISH_REASONS), draw(USAGES)))
        left[place] = left[place][size:]
        if not left[place]:
            del left[place]
    return texts, chunks


@given(interleavings())
def test_pieces_are_judged_as_the_whole(case: tuple[dict[Place, str], list[UpstreamChunk]]) -> None:
    texts, chunks = case

    assert without_said(accumulator(chunks)) == without_said(whole(texts, chunks))


def without_said(content: Content) -> tuple[ContentPart, ...]:
    """All but text and refusal as one text, which depends on the order of their pieces."""
    return tuple(part for part in content.parts if not part.label.endswith(" said"))


def test_text_and_refusal_are_also_judged_as_the_one_text_that_messages_make_of_them() -> None:
    """A word must not hide between them."""
    deltas = [UpstreamDelta(content="ze"), UpstreamDelta(refusal="br"), UpstreamDelta(content="a")]
    chunks = [UpstreamChunk(choices=[UpstreamChunkChoice(delta=delta)]) for delta in deltas]
    answer = {"choices": [{"index": 0, "message": {"content": "a ze", "refusal": "bra"}}]}
    parts: list[dict[str, str]] = [{"type": "text", "text": "a ze"}]
    in_parts = {"choices": [{"index": 0, "message": {"content": parts, "refusal": "bra"}}]}

    assert "zebra" in {part.text for part in accumulator(chunks).parts}
    for each in (answer, in_parts):
        content = completion_content(msgspec.convert(each, UpstreamCompletion))
        assert "a zebra" in {part.text for part in content.parts}


def test_reasoning_under_changing_names_is_one_text() -> None:
    """Callers get both names as one text, so a word must not hide between them."""
    deltas = [UpstreamDelta(reasoning="bo"), UpstreamDelta(reasoning_content="mb")]
    chunks = [UpstreamChunk(choices=[UpstreamChunkChoice(delta=delta)]) for delta in deltas]

    assert [part.text for part in accumulator(chunks).parts] == ["bomb"]


def test_names_that_are_repeated_count_once() -> None:
    calls = [
        ToolCallDelta(id="c1", function=FunctionDelta(name="look", arguments="{")),
        ToolCallDelta(id="c1", function=FunctionDelta(name="look", arguments="}")),
    ]
    chunks = [
        UpstreamChunk(choices=[UpstreamChunkChoice(delta=UpstreamDelta(tool_calls=[call]))])
        for call in calls
    ]

    (part,) = accumulator(chunks).parts
    assert part.text == '{"id":"c1","function":{"name":"look","arguments":"{}"}}'


def test_probabilities_are_joined_across_records() -> None:
    def logprobs(token: str, guess: str) -> dict[str, Any]:
        return {"content": [{"token": token, "top_logprobs": [{"token": guess}]}]}

    chunks = [
        UpstreamChunk(
            choices=[
                UpstreamChunkChoice(
                    delta=UpstreamDelta(content=said), logprobs=logprobs(said, guess)
                )
            ]
        )
        for said, guess in (("go", "bo"), ("od", "mb"))
    ]

    assert [part.text for part in accumulator(chunks).parts] == ["good", "bomb"]
