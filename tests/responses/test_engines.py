"""Responses of real engines: as many tokens as they count, at as much as they cost in a chat."""

from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
import pytest_asyncio
from openai import AsyncOpenAI
from openai.types.responses import ResponseUsage
from pydantic import BaseModel

from tests.responses.test_sdk import options
from tests.support.deployment import (
    CACHED_PICO_USD,
    COMPLETION_PICO_USD,
    MODEL,
    PROMPT_PICO_USD,
    Deployment,
    chat,
    model,
    offering,
)
from tests.support.engine import Engine
from tests.support.gateway import Gateway, running_gateway
from tests.support.vllm import NAME
from tollhouse.settings import Settings
from tollhouse.trial.llama import SLOT_TOKENS

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANSWER_TOKENS = 24
VLLM = pytest.param("vllm_engine", marks=pytest.mark.vllm)
ENGINES = ["llama_engine", VLLM]
PAINT: Any = {
    "type": "function",
    "name": "paint",
    "description": "Paint the door.",
    "parameters": {
        "type": "object",
        "properties": {"color": {"type": "string", "enum": ["red", "blue"]}},
        "required": ["color"],
        "additionalProperties": False,
    },
}


class Paint(BaseModel):
    """An answer that takes few tokens."""

    color: Literal["red", "blue"]


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.getfixturevalue(request.param)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(settings: Settings, engine: Engine) -> AsyncIterator[Gateway]:
    offered = model(
        context_length=SLOT_TOKENS,
        max_output_length=256,
        upstream_model=NAME,
        features=["json_mode", "structured_outputs", "tools"],
    )
    shelf = offering(settings, engine.base_url, models={MODEL: offered}, takes=[])
    async with running_gateway(shelf) as running:
        yield running


def billed_tokens(engine: Engine, *messages: dict[str, Any]) -> int:
    """How many tokens the engine counts in these messages, when it is asked past the gateway."""
    body = {"model": NAME, "messages": messages, "max_tokens": 1}
    return engine.post("/v1/chat/completions", body)["usage"]["prompt_tokens"]


def cost(usage: ResponseUsage | None) -> int:
    assert usage is not None
    cached = usage.input_tokens_details.cached_tokens
    return (
        (usage.input_tokens - cached) * PROMPT_PICO_USD
        + cached * CACHED_PICO_USD
        + usage.output_tokens * COMPLETION_PICO_USD
    )


async def test_an_answer_has_the_engine_s_tokens_and_their_price(
    deployment: Deployment, engine: Engine
) -> None:
    async with AsyncOpenAI(**options(deployment)) as client:
        answer = await client.responses.create(
            model=MODEL, input="Say hello.", max_output_tokens=ANSWER_TOKENS, temperature=0
        )

    assert answer.output_text
    assert answer.usage is not None
    assert answer.usage.input_tokens == billed_tokens(
        engine, {"role": "user", "content": "Say hello."}
    )
    assert answer.usage.output_tokens <= ANSWER_TOKENS
    assert (await deployment.settled(1)).settled_pico_usd == cost(answer.usage)


async def test_a_stream_has_the_words_tokens_and_cost_of_a_chat(deployment: Deployment) -> None:
    asked: Any = {"temperature": 0, "max_completion_tokens": ANSWER_TOKENS}
    async with deployment.customer() as caller:
        completion = (await caller.post("/v1/chat/completions", json=chat("Hi!", **asked))).json()
    spent = (await deployment.settled(1)).settled_pico_usd
    async with AsyncOpenAI(**options(deployment)) as client:
        stream = await client.responses.create(
            model=MODEL, input="Hi!", stream=True, temperature=0, max_output_tokens=ANSWER_TOKENS
        )
        told: list[Any] = [event async for event in stream]

    final = told[-1].response
    deltas = [event.delta for event in told if event.type == "response.output_text.delta"]
    assert "".join(deltas) == final.output_text == completion["choices"][0]["message"]["content"]
    assert final.usage.input_tokens == completion["usage"]["prompt_tokens"]
    assert final.usage.output_tokens == completion["usage"]["completion_tokens"]
    assert (await deployment.settled(2)).settled_pico_usd == spent + cost(final.usage)
    # What the engine had in its cache by the second time is cheaper.
    details = completion["usage"]["prompt_tokens_details"]
    more = final.usage.input_tokens_details.cached_tokens - details["cached_tokens"]
    assert spent == cost(final.usage) + more * (PROMPT_PICO_USD - CACHED_PICO_USD)


async def test_a_conversation_goes_on_from_its_own_output(
    deployment: Deployment, engine: Engine
) -> None:
    asked: Any = {"model": MODEL, "instructions": "Be brief.", "max_output_tokens": ANSWER_TOKENS}
    async with AsyncOpenAI(**options(deployment)) as client:
        responses: Any = client.responses
        first = await responses.create(input="Hi!", **asked)
        history: list[Any] = [
            {"role": "user", "content": "Hi!"},
            *(item.to_dict() for item in first.output),
            {"role": "user", "content": "Go on."},
        ]
        second = await responses.create(input=history, **asked)

    assert second.usage is not None
    assert second.usage.input_tokens == billed_tokens(
        engine,
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi!"},
        {"role": "assistant", "content": first.output_text},
        {"role": "user", "content": "Go on."},
    )


async def test_the_bound_cuts_the_answer(deployment: Deployment) -> None:
    async with AsyncOpenAI(**options(deployment)) as client:
        answer = await client.responses.create(
            model=MODEL, input="Tell me a long story.", max_output_tokens=4
        )

    assert answer.status == "incomplete"
    assert answer.usage is not None
    assert answer.usage.output_tokens == 4


async def test_log_probabilities_are_those_of_the_text(deployment: Deployment) -> None:
    async with AsyncOpenAI(**options(deployment)) as client:
        answer: Any = await client.responses.create(
            model=MODEL,
            input="Hi!",
            max_output_tokens=8,
            top_logprobs=2,
            include=["message.output_text.logprobs"],
        )

    (part,) = answer.output[0].content
    assert "".join(token.token for token in part.logprobs).startswith(part.text)
    assert all(len(token.top_logprobs) >= 2 for token in part.logprobs)


async def test_an_answer_fits_its_schema(deployment: Deployment) -> None:
    async with AsyncOpenAI(**options(deployment)) as client:
        answer = await client.responses.parse(
            model=MODEL, input="Which color?", text_format=Paint, max_output_tokens=64
        )

    assert answer.output_parsed is not None
    assert answer.output_parsed.color in ("red", "blue")


@pytest.mark.parametrize("engine", [VLLM], indirect=True, scope="module")
async def test_a_function_is_called_the_same_whole_and_streamed(deployment: Deployment) -> None:
    """By an engine that makes even this model call one."""
    asked: Any = {
        "model": MODEL,
        "input": "Paint the door red.",
        "tools": [PAINT],
        "tool_choice": "required",
        "max_output_tokens": 128,
        "temperature": 0,
    }
    async with AsyncOpenAI(**options(deployment)) as client:
        responses: Any = client.responses
        whole = await responses.create(**asked)
        async with responses.stream(**asked) as stream:
            streamed = await stream.get_final_response()

    calls = [answer.output[-1] for answer in (whole, streamed)]
    assert [(call.type, call.name) for call in calls] == [("function_call", "paint")] * 2
    assert "red" in calls[0].arguments
    assert calls[0].arguments == calls[1].arguments
