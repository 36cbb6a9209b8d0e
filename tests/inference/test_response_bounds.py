"""What a response may cost at most is what the chat may cost that it becomes."""

from dataclasses import replace
from typing import Any

import pytest

from tollhouse.contract.decoding import decode
from tollhouse.contract.responses import ResponseRequest
from tollhouse.inference.responses.translation import translate
from tollhouse.ledger.bounds import ModelBounds, TokenizerFamily, of_chat_request
from tollhouse.ledger.pricing import TokenBound

ORDINARY = ModelBounds(
    tokenizer=TokenizerFamily.BYTES, context_length=128_000, max_output_length=8_192
)


def bound_of(model: ModelBounds = ORDINARY, /, **members: object) -> TokenBound:
    request, *_ = translate(decode({"model": "m", "input": "a"} | members, ResponseRequest))
    return of_chat_request(request, model)


def test_a_response_counts_its_instructions_items_and_tools() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "q" * 1_000}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "r" * 1_000}]},
        {
            "type": "function_call",
            "call_id": "c",
            "name": "f",
            "arguments": "[" + "1," * 999 + "1]",
        },
        {"type": "function_call_output", "call_id": "c", "output": "o" * 1_000},
    ]
    least = bound_of().prompt_tokens

    bound = bound_of(
        input=items,
        instructions="i" * 1_000,
        tools=[{"type": "function", "name": "f", "description": "d" * 1_000}],
        text={"format": {"type": "json_schema", "name": "n", "schema": {"a": "s" * 1_000}}},
    )

    assert bound.prompt_tokens > least + 6 * 1_000 + len("[" + "\n    1," * 1_000)
    assert bound.prompt_tokens < ORDINARY.context_length


def test_an_image_in_a_response_is_counted_wherever_it_stands() -> None:
    picture = {"type": "input_image", "image_url": "data:" + "A" * 100_000, "file_id": None}
    model = replace(ORDINARY, image_tokens=10)

    bound = bound_of(
        model,
        input=[
            {"role": "user", "content": [picture]},
            {"type": "function_call_output", "call_id": "c", "output": [picture]},
        ],
    )

    assert bound.images == 2
    assert bound.prompt_tokens < 2_000


@pytest.mark.parametrize(
    "members",
    [
        {"tools": [{"type": "web_search"}]},
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_data": ""}]}]},
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": ""}]}]},
    ],
)
def test_a_response_with_input_of_any_size_fills_the_context(members: dict[str, Any]) -> None:
    bound = bound_of(**members)

    assert bound.prompt_tokens == ORDINARY.context_length


@pytest.mark.parametrize("name", ["max_output_tokens", "max_tokens", "max_completion_tokens"])
def test_a_response_has_one_completion_within_its_output_bound(name: str) -> None:
    bound = bound_of(**{name: 7})
    outside = bound_of(replace(ORDINARY, reasons_outside_bound=True), **{name: 7})

    assert (bound.output_tokens, bound.completions) == (7, 1)
    assert outside.output_tokens == 7 + ORDINARY.context_length
