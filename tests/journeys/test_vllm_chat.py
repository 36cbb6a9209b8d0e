"""Every field of a chat request on vLLM: what it does can be seen, or it is refused."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from openai import APIStatusError

from tests.journeys.engine_customer import (
    ANSWER_TOKENS,
    GREEDY,
    HELLO,
    NO_TOKENS,
    EngineCustomer,
    Tokens,
    endless,
    text_of_whole,
    tokens_of,
)
from tests.journeys.vllm_fields import (
    DOOR,
    KEPT,
    REFUSED,
    SHOWN,
    TOOLS,
    Shown,
    calls_of,
    schema,
)
from tests.support.deployment import MODEL, TAKES, model, offering
from tests.support.engine import Engine
from tests.support.gateway import Gateway, running_gateway
from tests.support.vllm import CONTEXT_TOKENS, NAME
from tollhouse.settings import Settings

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.vllm]

CALLING: dict[str, Any] = {
    "messages": DOOR,
    "tools": TOOLS,
    "tool_choice": "required",
    "temperature": 0,
    "max_tokens": 96,
}


@pytest.fixture(scope="module")
def engine(vllm_engine: Engine) -> Engine:
    return vllm_engine


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(settings: Settings, engine: Engine) -> AsyncIterator[Gateway]:
    """All that vLLM does; what it would drop in silence is not declared."""
    offered = model(
        context_length=CONTEXT_TOKENS,
        max_output_length=256,
        upstream_model=NAME,
        features=["cache_salt", "json_mode", "prompt_logprobs", "structured_outputs", "tools"],
    )
    shelf = offering(
        settings,
        engine.base_url,
        models={MODEL: offered},
        takes=TAKES,
        counts_tokens_by="tokenize",
        counts_exactly=True,
    )
    async with running_gateway(shelf) as running:
        yield running


# What can be seen


@pytest.mark.parametrize("case", SHOWN, ids=lambda case: case.field)
async def test_what_a_field_does_is_seen_and_paid_for(
    customer: EngineCustomer, case: Shown
) -> None:
    answer = await customer.ask(
        **({"messages": HELLO, "temperature": 0, "max_tokens": 24} | case.fields)
    )

    assert case.is_seen(answer), answer
    await customer.check(answer)


async def test_three_choices_are_paid_for_as_three(customer: EngineCustomer) -> None:
    """The prompt once: the engine has it for all of them."""
    asked: Any = {"messages": HELLO, "n": 3, "temperature": 1.0, "max_tokens": ANSWER_TOKENS}

    whole = await customer.ask(**asked)
    chunks = await customer.stream(**asked)

    assert [choice.index for choice in whole.choices] == [0, 1, 2]
    assert {choice.index for chunk in chunks for choice in chunk.choices} == {0, 1, 2}
    prompt = customer.engine.post("/tokenize", {"model": NAME, "messages": HELLO})["count"]
    told = [tokens_of(answer.usage) for answer in (whole, chunks[-1])]
    assert [tokens.input + tokens.cached_input for tokens in told] == [prompt, prompt]
    assert min(tokens.output for tokens in told) >= 3
    assert (await customer.used(sum(tokens.output for tokens in told))).output == sum(
        tokens.output for tokens in told
    )
    credit = await customer.deployment.settled(2)
    assert credit.settled_pico_usd == sum(tokens.cost_pico_usd for tokens in told)


async def test_only_one_call_is_made_where_more_are_not_wanted(customer: EngineCustomer) -> None:
    """Of a model that may not end its answer."""
    asked: Any = CALLING | {"logit_bias": endless(customer.engine)}

    one = await customer.ask(**asked, parallel_tool_calls=False)
    many = await customer.ask(**asked, parallel_tool_calls=True)

    assert calls_of(one) == [("paint", {"color": "red"})]
    assert one.usage.completion_tokens < many.usage.completion_tokens == 96
    await customer.check(one, many)


async def test_a_call_is_the_same_whole_and_streamed(customer: EngineCustomer) -> None:
    whole = await customer.ask(**CALLING)
    _, streamed = await customer.follow(**CALLING)

    assert calls_of(whole) == calls_of(streamed) == [("paint", {"color": "red"})]
    assert streamed.choices[0].finish_reason == "tool_calls"
    await customer.check(whole, streamed)


async def test_a_salt_of_the_caller_s_parts_what_is_remembered(customer: EngineCustomer) -> None:
    story = [{"role": "user", "content": "The gate is open and the toll is paid. " * 30}]
    salts = (None, None, "mine", "mine", "")
    asked: Any = {"messages": story, "temperature": 0, "max_tokens": 2}

    answers = [await customer.ask(**asked, extra_body={"cache_salt": salt}) for salt in salts]

    cached = [tokens_of(answer.usage).cached_input for answer in answers]
    assert cached[0] == cached[2] == 0
    assert cached[1] == cached[3] == cached[4] > 0
    await customer.check(*answers)


async def test_the_last_credit_pays_for_tools_that_it_covers_exactly(
    customer: EngineCustomer,
) -> None:
    body = {"model": NAME, "messages": DOOR, "tools": TOOLS}
    prompt = customer.engine.post("/tokenize", body)["count"]
    most = Tokens(input=prompt, cached_input=0, output=CALLING["max_tokens"])
    await customer.deployment.leave_credit(most.cost_pico_usd)

    answer = await customer.ask(**CALLING)

    assert tokens_of(answer.usage).input == prompt
    await customer.check(answer)


# What stays in the gateway


@pytest.mark.parametrize(("field", "value"), KEPT)
async def test_what_is_not_for_the_engine_does_not_change_its_answer(
    customer: EngineCustomer, field: str, value: object
) -> None:
    plain = await customer.ask(messages=HELLO, **GREEDY)
    answer = await customer.ask(messages=HELLO, **GREEDY, extra_body={field: value})

    assert text_of_whole(answer) == text_of_whole(plain)
    await customer.check(plain, answer)


# What is refused


@pytest.mark.parametrize(("field", "value", "param"), REFUSED)
async def test_what_the_engine_would_drop_in_silence_is_refused(
    customer: EngineCustomer, field: str, value: object, param: str
) -> None:
    with pytest.raises(APIStatusError) as refused:
        await customer.ask(messages=HELLO, **GREEDY, extra_body={field: value})

    assert refused.value.status_code == httpx2.codes.NOT_IMPLEMENTED
    assert refused.value.param == param
    assert await customer.used(0) == NO_TOKENS
    assert (await customer.deployment.credit()).settled_pico_usd == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": schema({"type": "string", "pattern": "["})},
        {"extra_body": {"top_logprobs": 10_000, "logprobs": True}},
    ],
    ids=["schema", "top_logprobs"],
)
async def test_what_the_engine_itself_refuses_costs_nothing(
    customer: EngineCustomer, fields: dict[str, Any]
) -> None:
    with pytest.raises(APIStatusError) as refused:
        await customer.ask(**({"messages": HELLO} | GREEDY | fields))

    assert refused.value.status_code == httpx2.codes.UNPROCESSABLE_CONTENT
    assert (await customer.deployment.settled(1)).settled_pico_usd == 0
