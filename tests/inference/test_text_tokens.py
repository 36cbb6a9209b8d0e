"""One count for streams and whole answers: a quarter of the characters of text, rounded up."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollhouse.backends.types import UpstreamChunk, UpstreamCompletion
from tollhouse.contract.chat import ChatRequest
from tollhouse.inference.meter import Meter, OutputCount, prompt_characters, tokens_of
from tollhouse.ledger.pricing import TokenBound

BOUND = TokenBound(prompt_tokens=1_000, images=0, output_tokens=4_000, completions=4)
CHANNELS = ("content", "reasoning", "refusal")
TEXT = st.text(max_size=60)
CALLS = st.lists(st.tuples(st.text(min_size=1, max_size=20), TEXT), max_size=3)
CHOICES = st.lists(
    st.fixed_dictionaries({**dict.fromkeys(CHANNELS, TEXT), "calls": CALLS}), min_size=1, max_size=4
)


def meter(bound: TokenBound = BOUND) -> Meter:
    return Meter(prompt_characters=40, bound=bound)


def counted_whole(choices: list[dict[str, Any]], bound: TokenBound = BOUND) -> int:
    """The count of an answer that came in one piece."""
    messages = [
        {name: choice[name] for name in CHANNELS}
        | {
            "tool_calls": [
                {"id": f"call_{number}", "function": {"name": name, "arguments": arguments}}
                for number, (name, arguments) in enumerate(choice["calls"])
            ]
        }
        for choice in choices
    ]
    body = {"choices": [{"index": i, "message": m} for i, m in enumerate(messages)]}
    seen = meter(bound)
    seen.see_completion(msgspec.convert(body, UpstreamCompletion))
    return seen.counted_output_tokens()


def pieces_of(text: str, data: st.DataObject) -> list[str]:
    """The text, cut at random places."""
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6).map(sorted))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def deltas_of(choice: dict[str, Any], data: st.DataObject) -> list[dict[str, Any]]:
    """The records of one choice; some engines repeat the name of a call in every piece."""
    deltas: list[dict[str, Any]] = [
        {name: piece} for name in CHANNELS for piece in pieces_of(choice[name], data)
    ]
    for number, (name, arguments) in enumerate(choice["calls"]):
        repeats_name = data.draw(st.booleans())
        for position, piece in enumerate(pieces_of(arguments, data)):
            function = {"arguments": piece}
            if position == 0 or repeats_name:
                function["name"] = name
            deltas.append({"tool_calls": [{"index": number, "function": function}]})
    return deltas


@given(CHOICES, st.data())
def test_the_same_answer_counts_alike_whole_and_in_any_pieces(
    choices: list[dict[str, Any]], data: st.DataObject
) -> None:
    records = [
        {"choices": [{"index": index, "delta": delta}]}
        for index, choice in enumerate(choices)
        for delta in deltas_of(choice, data)
    ]
    seen = meter()
    for record in data.draw(st.permutations(records)):
        seen.see([msgspec.convert(record, UpstreamChunk)])

    assert seen.counted_output_tokens() == counted_whole(choices)


def test_a_stream_of_single_characters_counts_as_its_text() -> None:
    seen = meter()
    for character in "one two three":
        record = {"choices": [{"delta": {"content": character}}]}
        seen.see([msgspec.convert(record, UpstreamChunk)])

    assert seen.counted_output_tokens() == 4


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        ({"content": ""}, 0),
        ({"content": None}, 0),
        ({"content": "hi"}, 1),
        ({"content": "日本語" * 4}, 3),
        ({"content": [{"type": "text", "text": "12345"}, {"type": "refusal", "refusal": "no"}]}, 2),
        ({"content": [{"type": "image_url", "image_url": {"url": "data:" + "x" * 400}}]}, 0),
        ({"reasoning": "12345678", "reasoning_content": "12345678"}, 2),
        ({"refusal": "1234"}, 1),
        ({"function_call": {"name": "call", "arguments": '{"a":1}'}}, 3),
        ({"tool_calls": [{"id": "x" * 90, "function": {"name": "f", "arguments": "{}"}}]}, 1),
        ({"tool_calls": [{"function": {"name": "f", "arguments": {"a": [1]}}}]}, 3),
        ({"tool_calls": [{"custom": {"name": "abcd", "input": "abcd"}}]}, 2),
        ({"tool_calls": [{"function": "not an object"}]}, 0),
    ],
)
def test_text_counts_and_the_keys_around_it_do_not(message: dict[str, Any], tokens: int) -> None:
    seen = meter()
    seen.see_completion(msgspec.convert({"choices": [{"message": message}]}, UpstreamCompletion))

    assert seen.counted_output_tokens() == tokens
    assert seen.has_output == (tokens > 0)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50)), max_size=30))
def test_a_count_exceeds_neither_the_bound_of_a_choice_nor_that_of_all(
    added: list[tuple[int, int]],
) -> None:
    count = OutputCount(choice_tokens_max=5, tokens_max=10)
    for choice, characters in added:
        count.add(choice, characters)

    sums = [sum(size for index, size in added if index == choice) for choice in range(6)]
    assert count.tokens == min(sum(min(tokens_of(size), 5) for size in sums), 10)
    assert count.choices == sum(size > 0 for size in sums)


def test_the_text_of_a_prompt_counts_without_keys_and_images() -> None:
    request = msgspec.convert(
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "12345"},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "1234567890"},
                        {"type": "image_url", "image_url": {"url": "data:" + "x" * 1_000}},
                    ],
                },
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "c", "function": {"name": "ab", "arguments": "{}"}, "x": "1234567"}
                    ],
                },
            ],
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "ab", "description": "cde", "parameters": {"type": "x"}},
                    "x": {"y": 1},
                }
            ],
        },
        ChatRequest,
    )

    assert prompt_characters(request) == 5 + 10 + 4 + 7 + 2 + 3 + len('{"type":"x"}{"y":1}')
