"""Chat with real engines by the official SDK: what was said, and that everybody counts the same."""

import json
import re
from typing import Any, Literal

import httpx2
import msgspec
import pytest
from openai import APIStatusError
from pydantic import BaseModel

from tests.identity.waiting import until
from tests.journeys import vllm_fields
from tests.journeys.engine_customer import (
    ANSWER_TOKENS,
    GREEDY,
    HELLO,
    NO_TOKENS,
    WITH_USAGE,
    EngineCustomer,
    Tokens,
    endless,
    request_id_of,
    text_of,
    text_of_whole,
    tokens_of,
)
from tests.support.deployment import MODEL
from tests.support.engine import Engine
from tests.support.vllm import NAME
from tollhouse.contract.chat import ChatRequest

pytestmark = pytest.mark.asyncio(loop_scope="module")

SENTENCE = GREEDY | {"stop": [".", "!", "?"]}
"""The helper of streams takes no answer that was cut by its bound."""


class Paint(BaseModel):
    """An answer that takes few tokens."""

    color: Literal["red", "blue"]


FIELDS = {
    *("messages", "max_tokens", "max_completion_tokens", "stream", "stream_options"),
    *("temperature", "top_p", "frequency_penalty", "presence_penalty", "logit_bias"),
    *("seed", "stop", "logprobs", "top_logprobs", "response_format"),
}
"""What is shown here and in `test_engine_sampling`."""


def directly(engine: Engine, messages: list[Any], **fields: object) -> dict[str, Any]:
    """The same question, past the gateway."""
    body = {"model": NAME, "messages": messages, "temperature": 0, "max_tokens": ANSWER_TOKENS}
    return engine.post("/v1/chat/completions", body | fields)


# What is too long


async def test_a_prompt_that_is_too_long_is_told_with_its_numbers(customer: EngineCustomer) -> None:
    with pytest.raises(APIStatusError) as refused:
        await customer.ask(messages=[{"role": "user", "content": "word " * 4_000}], **GREEDY)

    assert (refused.value.status_code, refused.value.code) == (400, "context_length_exceeded")
    sizes = re.findall(r"\d{4,}", refused.value.message)
    assert len(sizes) >= 2
    assert int(sizes[0]) < int(sizes[1])
    assert (await customer.deployment.credit()).settled_pico_usd == 0


# Whole and streamed


async def test_an_answer_is_the_engine_s_own_at_what_it_counts(customer: EngineCustomer) -> None:
    answer = await customer.ask(messages=HELLO, **GREEDY)

    await customer.check(answer)
    engine_s = directly(customer.engine, HELLO)
    assert answer.choices[0].message.content == engine_s["choices"][0]["message"]["content"]
    assert answer.choices[0].finish_reason == engine_s["choices"][0]["finish_reason"]
    assert answer.usage.prompt_tokens == engine_s["usage"]["prompt_tokens"]
    assert answer.usage.completion_tokens == engine_s["usage"]["completion_tokens"]


async def test_a_stream_says_and_costs_the_same(customer: EngineCustomer) -> None:
    whole = await customer.ask(messages=HELLO, **GREEDY)
    chunks = await customer.stream(messages=HELLO, **GREEDY)

    assert text_of(chunks) == text_of_whole(whole)
    assert [chunk.usage for chunk in chunks[:-1] if chunk.usage] == []
    await customer.check(whole, chunks[-1])


async def test_usage_that_nobody_asked_to_see_is_paid_all_the_same(
    customer: EngineCustomer,
) -> None:
    chunks = await customer.stream(messages=HELLO, **GREEDY, stream_options=None)

    assert [chunk.usage for chunk in chunks if chunk.usage] == []
    credit = await customer.deployment.settled(1)
    used = await customer.used(1)
    assert used.output > 0
    assert credit.settled_pico_usd == used.cost_pico_usd


async def test_the_helper_of_streams_reads_to_the_end(customer: EngineCustomer) -> None:
    told, final = await customer.follow(messages=HELLO, **SENTENCE)

    deltas = [event.delta for event in told if event.type == "content.delta"]
    assert "".join(deltas) == text_of_whole(final)
    await customer.check(final)


async def test_the_blocking_client_gets_the_same(customer: EngineCustomer) -> None:
    def journey(completions: Any) -> list[Any]:  # noqa: ANN401 - what the SDK has
        asked: Any = {"model": MODEL, "messages": HELLO, **SENTENCE}
        whole = completions.create(**asked)
        chunks = list(completions.create(**asked, stream=True, **WITH_USAGE))
        with completions.stream(**asked, **WITH_USAGE) as events:
            final = events.get_final_completion()
        assert text_of(chunks) == text_of_whole(final) == text_of_whole(whole)
        return [whole, chunks[-1], final]

    await customer.check(*await customer.blocking(journey))


async def test_a_second_turn_pays_less_for_what_the_engine_remembers(
    customer: EngineCustomer,
) -> None:
    story = "Once there was a gate at the end of the road. " * 16
    first_turn = [{"role": "user", "content": f"{story} What was it?"}]
    first = await customer.ask(messages=first_turn, **GREEDY)
    second_turn = [
        {"role": "assistant", "content": text_of_whole(first)},
        {"role": "user", "content": "And where was it?"},
    ]
    second = await customer.ask(messages=[*first_turn, *second_turn], **GREEDY)

    assert tokens_of(second.usage).cached_input > 100
    await customer.check(first, second)


# What the SDK makes of an answer


async def test_an_answer_fits_its_schema_whole_and_streamed(customer: EngineCustomer) -> None:
    asked: Any = {
        "messages": [{"role": "user", "content": "Which color?"}],
        "response_format": Paint,
        "max_completion_tokens": 64,
        "temperature": 0,
    }

    whole = await customer.parse(**asked)
    _, streamed = await customer.follow(**asked)

    for answer in (whole, streamed):
        assert isinstance(answer.choices[0].message.parsed, Paint)
    await customer.check(whole, streamed)


async def test_log_probabilities_are_those_of_the_text(customer: EngineCustomer) -> None:
    asked: Any = GREEDY | {"messages": HELLO, "logprobs": True, "top_logprobs": 2}

    whole = await customer.ask(**asked)
    chunks = await customer.stream(**asked)

    parts = [part for chunk in chunks for part in chunk.choices if part.logprobs is not None]
    streamed = [token for part in parts for token in part.logprobs.content]
    for tokens in (whole.choices[0].logprobs.content, streamed):
        assert "".join(token.token for token in tokens).startswith(text_of_whole(whole))
        assert all(len(token.top_logprobs) >= 2 for token in tokens)
        assert all(token.logprob <= 0 for token in tokens)
    await customer.check(whole, chunks[-1])


# Counting and refusing


@pytest.mark.parametrize("system", [None, "Be brief."])
async def test_a_count_is_what_is_billed_and_costs_nothing(
    customer: EngineCustomer, system: str | None
) -> None:
    told = [{"role": "system", "content": system}] if system else []
    body = {"model": MODEL, "messages": HELLO} | ({"system": system} if system else {})

    async with customer.deployment.customer() as caller:
        counted = await caller.post("/v1/messages/count_tokens", json=body)
    answer = await customer.ask(messages=[*told, *HELLO], **GREEDY)

    assert counted.status_code == httpx2.codes.OK, counted.text
    engine_s = customer.engine.post("/v1/messages/count_tokens", body | {"model": NAME})
    assert counted.json() == {"input_tokens": engine_s["input_tokens"]}
    assert counted.json()["input_tokens"] == answer.usage.prompt_tokens
    await customer.check(answer)


@pytest.mark.parametrize(
    ("param", "value"),
    [("n", 2), ("prompt_logprobs", 1), ("cache_salt", "salt"), ("verbosity", "low")],
)
async def test_what_the_model_does_not_declare_never_reaches_the_engine(
    customer: EngineCustomer, param: str, value: object
) -> None:
    with pytest.raises(APIStatusError) as refused:
        await customer.ask(messages=HELLO, **GREEDY, extra_body={param: value})

    assert refused.value.status_code == httpx2.codes.NOT_IMPLEMENTED
    assert refused.value.param == param
    assert await customer.used(0) == NO_TOKENS
    assert (await customer.deployment.credit()).settled_pico_usd == 0


async def test_who_leaves_pays_for_what_was_made_and_no_more(customer: EngineCustomer) -> None:
    counted = customer.engine.post("/v1/messages/count_tokens", {"model": NAME, "messages": HELLO})
    asked = {"model": MODEL, "messages": HELLO, "stream": True, "max_tokens": 200}
    body = asked | {"logit_bias": endless(customer.engine)}
    async with (
        customer.deployment.customer() as caller,
        caller.stream("POST", "/v1/chat/completions", json=body) as answer,
    ):
        first = json.loads((await anext(answer.aiter_lines())).removeprefix("data: "))

    async def is_idle() -> bool:
        metrics = customer.engine.metrics()
        running = ("vllm:num_requests_running", "llamacpp:requests_processing")
        return sum(metrics.get(name, 0) for name in running) == 0

    entry = await customer.entry(request_id_of(first["id"]))
    await until(is_idle)
    made = await customer.used(entry["output_tokens"])
    assert entry["kind"] == "post"
    assert entry["input_tokens"] + entry["cached_input_tokens"] == counted["input_tokens"]
    assert 1 <= entry["output_tokens"] <= made.output < 200


# The end of credit


async def test_the_last_credit_pays_for_what_it_covers_exactly(customer: EngineCustomer) -> None:
    """By bytes the prompt could be forty times as long."""
    counted = customer.engine.post("/v1/messages/count_tokens", {"model": NAME, "messages": HELLO})
    most = Tokens(input=counted["input_tokens"], cached_input=0, output=ANSWER_TOKENS)
    await customer.deployment.leave_credit(most.cost_pico_usd)

    answer = await customer.ask(messages=HELLO, **GREEDY)

    await customer.check(answer)


async def test_less_than_the_exact_price_is_refused_before_the_engine_works(
    customer: EngineCustomer,
) -> None:
    counted = customer.engine.post("/v1/messages/count_tokens", {"model": NAME, "messages": HELLO})
    most = Tokens(input=counted["input_tokens"], cached_input=0, output=ANSWER_TOKENS)
    await customer.deployment.leave_credit(most.cost_pico_usd - 1)

    with pytest.raises(APIStatusError) as refused:
        await customer.ask(messages=HELLO, **GREEDY)

    assert refused.value.status_code == httpx2.codes.PAYMENT_REQUIRED
    assert await customer.used(0) == NO_TOKENS


async def test_no_field_of_a_request_is_forgotten() -> None:
    """What is not shown here is in the tables for vLLM."""
    names = {field.encode_name for field in msgspec.structs.fields(ChatRequest)}

    assert FIELDS | vllm_fields.fields() == names
