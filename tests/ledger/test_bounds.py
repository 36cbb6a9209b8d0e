"""No tokenizer counts more than the bound, and what cannot be bounded fills the context."""

import os
import unicodedata
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, example, given, settings
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.normalizers import NFC, NFKC, Normalizer, Sequence
from tokenizers.pre_tokenizers import ByteLevel

from tests.ledger.renderings import RENDERINGS
from tests.ledger.requests import (
    BODIES,
    CONVERSATIONS,
    call,
    called,
    nested,
    request_of,
    said,
    text_part,
    tool,
)
from tests.support.engine import Engine
from tollhouse.ledger.bounds import (
    MESSAGE_TOKENS,
    TEMPLATE_TOKENS,
    TOOLS_TOKENS,
    ModelBounds,
    TokenizerFamily,
    chat_prompt,
    of_chat_request,
    output_tokens_max,
)

EXAMPLES = int(os.environ.get("TOLLHOUSE_EXAMPLES", "10"))
THOROUGH = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

Body = dict[str, Any]

BOUNDLESS = ModelBounds(
    tokenizer=TokenizerFamily.BYTES,
    context_length=10**12,
    max_output_length=4_096,
    bills_prompt_per_choice=True,
)
ORDINARY = ModelBounds(
    tokenizer=TokenizerFamily.BYTES, context_length=128_000, max_output_length=4_096
)
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}
OWN_WORDS = 32
"""Our renderings say little of their own, so that the allowances for it may not help them."""
SPREAD: Body = {
    "model": "m",
    "messages": [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call("f", "[" + ",".join(["[[1E15]]"] * 500) + "]")],
        }
    ],
    "tools": [tool("f", "<'\x7f" * 500, {"a": nested([1e15, {}] * 100, 60)})],
    "n": 128,
}
"""Little to send and much to print."""


EXTREMES: dict[str, Body] = {
    "NFC": {"messages": [said("user", "\U0001d160" * 2_000)]},
    "NFKC": {"messages": [said("user", "\ufdfa" * 2_000)]},
    "quoted text": {"messages": [said("user", '"\\\n\x01' * 400)]},
    "markup": {"tools": [tool("f", "<" * 2_000, {})]},
    "two bytes escaped": {"tools": [tool("f", "\u00e9" * 2_000, {})]},
    "four bytes escaped": {"tools": [tool("f", "\U0001f469" * 2_000, {})]},
    "free members of a tool": {"tools": [tool("f", "", {}) | {"x": "<" * 2_000}]},
    "free members of a call": {"messages": [called([call("f", "{}") | {"x": "<" * 2_000}], "")]},
    "indented": {"tools": [tool("f", "", {"a": nested(["a"] * 400, 30)})]},
    "empty objects": {"tools": [tool("f", "", {"a": [{}] * 400})]},
    "short members": {"tools": [tool("f", "", {str(n): 0 for n in range(400)})]},
    "numbers": {"messages": [called([call("f", f"[{','.join(['1E15'] * 400)}]")], "")]},
    "nested arguments": {"messages": [called([call("f", f"[{'[[0]],' * 400}0]")], "")]},
}
"""Each is where one of the numbers of the bound is needed."""


def byte_tokenizer(normalizer: Normalizer) -> Tokenizer:
    """The worst of its family: nothing is merged, so that each normalized byte is a token."""
    letters = sorted(ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(letters)}
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=[]))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    return tokenizer


TOKENIZERS = {
    TokenizerFamily.BYTES: byte_tokenizer(Sequence([])),
    TokenizerFamily.NFC: byte_tokenizer(NFC()),
    TokenizerFamily.NFKC: byte_tokenizer(NFKC()),
}


def bound_without_preambles(family: TokenizerFamily, body: Body) -> int:
    """The bound for a template that has no system prompt and does not tell how to call tools."""
    model = replace(BOUNDLESS, tokenizer=family, template_tokens=OWN_WORDS)
    preamble_tokens = TOOLS_TOKENS if body.get("tools") else 0
    return of_chat_request(request_of(body), model).prompt_tokens - preamble_tokens * body["n"]


def user(*parts: Body, **members: Any) -> Body:  # noqa: ANN401 - JSON
    """A request with one message."""
    messages = [{"role": "user", "content": list(parts)}]
    return {"model": "m", "messages": messages} | members


@pytest.mark.parametrize("family", TOKENIZERS)
@THOROUGH
@example(SPREAD)
@given(BODIES)
def test_no_rendering_has_more_tokens_than_the_bound(family: TokenizerFamily, body: Body) -> None:
    bound_tokens = bound_without_preambles(family, body)

    for render in RENDERINGS:
        tokens = len(TOKENIZERS[family].encode(render(body)).ids)
        assert tokens * body["n"] <= bound_tokens


@pytest.mark.parametrize("family", TOKENIZERS)
@pytest.mark.parametrize("extreme", EXTREMES)
def test_the_longest_renderings_stay_within_the_bound(
    family: TokenizerFamily, extreme: str
) -> None:
    body = {"model": "m", "messages": [said("user", "")], "n": 1} | EXTREMES[extreme]
    bound_tokens = bound_without_preambles(family, body)

    for render in RENDERINGS:
        assert len(TOKENIZERS[family].encode(render(body)).ids) <= bound_tokens


@THOROUGH
@given(CONVERSATIONS)
def test_a_real_template_and_tokenizer_stay_within_the_bound(
    llama_engine: Engine, messages: list[Body]
) -> None:
    body = {"model": "m", "messages": [*messages, said("user", "Why?")]}
    bound = of_chat_request(request_of(body), BOUNDLESS)

    assert llama_engine.count_tokens(llama_engine.render(body)) <= bound.prompt_tokens


@THOROUGH
@example(SPREAD)
@given(BODIES)
def test_a_real_tokenizer_stays_within_the_bound_of_every_rendering(
    llama_engine: Engine, body: Body
) -> None:
    bound = of_chat_request(request_of(body), BOUNDLESS)

    for render in RENDERINGS:
        assert llama_engine.count_tokens(render(body)) * body["n"] <= bound.prompt_tokens


def test_the_factors_are_the_most_that_normalizing_adds() -> None:
    """Composing never grows, so that the decomposed forms bound the composed ones."""
    changed = [
        character
        for character in map(chr, (*range(0xD800), *range(0xE000, 0x110000)))
        if unicodedata.normalize("NFKD", character) != character
    ]

    assert all(size("NFC", character) <= size("NFD", character) for character in changed)
    assert max(growth("NFD", character) for character in changed) == TokenizerFamily.NFC
    assert max(growth("NFKD", character) for character in changed) == TokenizerFamily.NFKC


def size(form: Literal["NFC", "NFD", "NFKD"], character: str) -> int:
    return len(unicodedata.normalize(form, character).encode())


def growth(form: Literal["NFD", "NFKD"], character: str) -> Fraction:
    return Fraction(size(form, character), len(character.encode()))


def test_longer_text_has_no_lower_bound() -> None:
    bounds = [
        of_chat_request(request_of(user(text_part("a" * length))), ORDINARY).prompt_tokens
        for length in (0, 1, 100, 10_000, 1_000_000)
    ]

    assert bounds == sorted(bounds)
    assert bounds[-1] == ORDINARY.context_length


def test_a_short_question_needs_little_more_than_the_allowances() -> None:
    bound = of_chat_request(request_of(user(text_part("Hello"))), ORDINARY)

    allowances = TEMPLATE_TOKENS[TokenizerFamily.BYTES] + MESSAGE_TOKENS
    assert 0 < bound.prompt_tokens - allowances < 100
    assert (bound.images, bound.output_tokens, bound.completions) == (0, 1_024, 1)


def test_the_data_of_an_image_is_no_text() -> None:
    model = replace(ORDINARY, image_tokens=1_000)
    without = of_chat_request(request_of(user(text_part("What is this?"))), model)

    bound = of_chat_request(request_of(user(text_part("What is this?"), PICTURE, PICTURE)), model)

    assert bound.images == 2
    assert bound.prompt_tokens == without.prompt_tokens + 2 * 1_000


@pytest.mark.parametrize(
    "body",
    [
        user(PICTURE),
        user({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}),
        user({"type": "text", "text": "a", "video_url": {"url": "https://example.com"}}),
        user({"type": "text", "text": "a", "image_url": "https://example.com"}),
        user({"image_url": "https://example.com", "text": "a"}),
        user(text_part("a"), web_search_options={}),
        user(text_part("a"), tools=[{"type": "web_search"}]),
        user(text_part("a"), tools=[{"type": ["no text"]}]),
        user(text_part("a" * 200_000)),
    ],
)
def test_what_may_be_of_any_size_fills_the_context(body: Body) -> None:
    assert of_chat_request(request_of(body), ORDINARY).prompt_tokens == ORDINARY.context_length


@pytest.mark.parametrize(
    "part",
    [
        {"text": "a"},
        {"type": None, "text": "a"},
        {"type": "text", "text": "a", "image_url": None},
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
        {"type": "refusal", "refusal": "no"},
    ],
)
def test_text_has_several_forms(part: Body) -> None:
    assert of_chat_request(request_of(user(part)), ORDINARY).prompt_tokens < 2_000


def test_an_unknown_tokenizer_may_fill_the_context() -> None:
    model = replace(ORDINARY, tokenizer=None)

    bound = of_chat_request(request_of(user(text_part("a"))), model)

    assert bound.prompt_tokens == ORDINARY.context_length


@pytest.mark.parametrize(
    ("requested", "expected"), [(None, 1_024), (1, 1), (4_000, 4_000), (5_000, 4_096)]
)
def test_the_output_bound_is_what_was_asked_for_as_far_as_the_model_goes(
    requested: int | None, expected: int
) -> None:
    body = user(text_part("a")) | ({} if requested is None else {"max_tokens": requested})

    assert of_chat_request(request_of(body), ORDINARY).output_tokens == expected
    assert output_tokens_max(requested, ORDINARY) == expected
    assert output_tokens_max(requested, replace(ORDINARY, context_length=1)) == 1


@pytest.mark.parametrize(
    ("reasoning", "beside"),
    [({"max_tokens": 500}, 500), ({"effort": "low"}, 128_000), ({}, 128_000)],
)
def test_reasoning_outside_the_bound_comes_on_top(reasoning: Body, beside: int) -> None:
    model = replace(ORDINARY, reasons_outside_bound=True)

    bound = of_chat_request(request_of(user(text_part("a"), reasoning=reasoning)), model)

    assert bound.output_tokens == 1_024 + beside


def test_a_prediction_may_be_billed_as_output() -> None:
    prediction = {"type": "content", "content": "a" * 1_000}

    bound = of_chat_request(request_of(user(text_part("a"), prediction=prediction)), ORDINARY)

    assert 1_000 < bound.output_tokens - 1_024 < 1_100


def test_a_prompt_may_be_billed_for_each_choice() -> None:
    request = request_of(user(text_part("a"), PICTURE, n=3))
    once = of_chat_request(request, replace(ORDINARY, image_tokens=10))

    bound = of_chat_request(
        request, replace(ORDINARY, image_tokens=10, bills_prompt_per_choice=True)
    )

    assert (bound.prompt_tokens, bound.images) == (3 * once.prompt_tokens, 3)
    assert once.completions == bound.completions == 3


def test_legacy_functions_and_schemas_count_as_tools_do() -> None:
    plain = of_chat_request(request_of(user(text_part("a"))), ORDINARY).prompt_tokens
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"a": "b" * 500}}}

    functions = user(text_part("a"), functions=[{"name": "f", "description": "d" * 500}])
    formatted = user(text_part("a"), response_format=schema)

    for body in (functions, formatted):
        assert of_chat_request(request_of(body), ORDINARY).prompt_tokens > plain + 500


@pytest.mark.parametrize("tools", [0, 1, 2])
@pytest.mark.parametrize("functions", [0, 1, 2])
def test_messages_tools_and_images_are_counted_each(tools: int, functions: int) -> None:
    body = user(text_part("a"), PICTURE, PICTURE)
    if tools:
        body["tools"] = [tool(f"tool_{number}", "d", {}) for number in range(tools)]
    if functions:
        body["functions"] = [{"name": f"function_{number}"} for number in range(functions)]

    prompt = chat_prompt(request_of(body))

    assert (prompt.messages, prompt.tools, prompt.images) == (1, tools + functions, 2)
    assert not prompt.is_open
