"""Responses of a real engine: as many tokens as it counts, at as much as they cost in a chat."""

from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
import pytest_asyncio
from openai import AsyncOpenAI
from openai.types.responses import ResponseUsage
from pydantic import BaseModel

from tests.responses.test_sdk import options
from tests.support.engine import Engine
from tests.support.gateway import Gateway, running_gateway
from tests.support.shop import (
    CACHED_PICO_USD,
    COMPLETION_PICO_USD,
    MODEL,
    PROMPT_PICO_USD,
    Shop,
    chat,
    model,
    offering,
)
from tollhouse.settings import Settings
from tollhouse.testing.llama import SLOT_TOKENS

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANSWER_TOKENS = 24


class Paint(BaseModel):
    """An answer that takes few tokens."""

    color: Literal["red", "blue"]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(settings: Settings, llama_engine: Engine) -> AsyncIterator[Gateway]:
    offered = model(
        context_length=SLOT_TOKENS,
        max_output_length=256,
        upstream_model="smollm2-135m",
        features=["json_mode", "structured_outputs"],
    )
    models = {MODEL: offered}
    async with running_gateway(
        offering(settings, llama_engine.base_url, models=models, takes=[])
    ) as running:
        yield running


def cost(usage: ResponseUsage | None) -> int:
    assert usage is not None
    cached = usage.input_tokens_details.cached_tokens
    return (
        (usage.input_tokens - cached) * PROMPT_PICO_USD
        + cached * CACHED_PICO_USD
        + usage.output_tokens * COMPLETION_PICO_USD
    )


async def test_an_answer_has_the_engine_s_tokens_and_their_price(
    shop: Shop, llama_engine: Engine
) -> None:
    question = "Say hello."
    body = {"messages": [{"role": "user", "content": question}]}
    counted = llama_engine.count_tokens(llama_engine.render(body))
    async with AsyncOpenAI(**options(shop)) as client:
        answer = await client.responses.create(
            model=MODEL, input=question, max_output_tokens=ANSWER_TOKENS, temperature=0
        )

    assert answer.output_text
    assert answer.usage is not None
    assert answer.usage.input_tokens == counted
    assert answer.usage.output_tokens <= ANSWER_TOKENS
    assert (await shop.settled(1)).settled_pico_usd == cost(answer.usage)


async def test_a_stream_has_the_words_and_tokens_of_a_chat(shop: Shop) -> None:
    asked: Any = {"temperature": 0, "max_completion_tokens": ANSWER_TOKENS}
    async with shop.customer() as caller:
        completion = (await caller.post("/v1/chat/completions", json=chat("Hi!", **asked))).json()
    async with AsyncOpenAI(**options(shop)) as client:
        stream = await client.responses.create(
            model=MODEL, input="Hi!", stream=True, temperature=0, max_output_tokens=ANSWER_TOKENS
        )
        told: list[Any] = [event async for event in stream]

    final = told[-1].response
    deltas = [event.delta for event in told if event.type == "response.output_text.delta"]
    assert "".join(deltas) == final.output_text == completion["choices"][0]["message"]["content"]
    assert final.usage.input_tokens == completion["usage"]["prompt_tokens"]
    assert final.usage.output_tokens == completion["usage"]["completion_tokens"]
    first = completion["usage"]["prompt_tokens_details"]["cached_tokens"]
    second = final.usage.input_tokens_details.cached_tokens
    both = 2 * cost(final.usage) + (second - first) * (PROMPT_PICO_USD - CACHED_PICO_USD)
    assert (await shop.settled(2)).settled_pico_usd == both


async def test_a_conversation_goes_on_from_its_own_output(shop: Shop, llama_engine: Engine) -> None:
    async with AsyncOpenAI(**options(shop)) as client:
        first = await client.responses.create(
            model=MODEL, input="Hi!", instructions="Be brief.", max_output_tokens=ANSWER_TOKENS
        )
        history: list[Any] = [
            {"role": "user", "content": "Hi!"},
            *(item.to_dict() for item in first.output),
            {"role": "user", "content": "Go on."},
        ]
        second = await client.responses.create(
            model=MODEL, input=history, instructions="Be brief.", max_output_tokens=ANSWER_TOKENS
        )

    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi!"},
        {"role": "assistant", "content": first.output_text},
        {"role": "user", "content": "Go on."},
    ]
    assert second.usage is not None
    assert second.usage.input_tokens == llama_engine.count_tokens(
        llama_engine.render({"messages": messages})
    )


async def test_the_bound_cuts_the_answer(shop: Shop) -> None:
    async with AsyncOpenAI(**options(shop)) as client:
        answer = await client.responses.create(
            model=MODEL, input="Tell me a long story.", max_output_tokens=4
        )

    assert answer.status == "incomplete"
    assert answer.usage is not None
    assert answer.usage.output_tokens == 4


async def test_log_probabilities_are_those_of_the_text(shop: Shop) -> None:
    async with AsyncOpenAI(**options(shop)) as client:
        answer: Any = await client.responses.create(
            model=MODEL,
            input="Hi!",
            max_output_tokens=8,
            top_logprobs=2,
            include=["message.output_text.logprobs"],
        )

    (part,) = answer.output[0].content
    assert "".join(token.token for token in part.logprobs).startswith(part.text)
    assert all(len(token.top_logprobs) == 2 for token in part.logprobs)


async def test_an_answer_fits_its_schema(shop: Shop) -> None:
    async with AsyncOpenAI(**options(shop)) as client:
        answer = await client.responses.parse(
            model=MODEL, input="Which color?", text_format=Paint, max_output_tokens=64
        )

    assert answer.output_parsed is not None
    assert answer.output_parsed.color in ("red", "blue")
