"""Fields by which real engines choose their words: each does what it says, and is paid for."""

import json
from typing import Any

import pytest

from tests.journeys.engine_customer import (
    ANSWER_TOKENS,
    GREEDY,
    HELLO,
    EngineCustomer,
    text_of_whole,
    tokens_of,
)
from tests.support.engine import Engine
from tests.support.vllm import NAME

pytestmark = pytest.mark.asyncio(loop_scope="module")


def token_ids(engine: Engine, text: str) -> list[int]:
    """Each engine calls the text by another name."""
    body = {"model": NAME, "prompt": text, "content": text, "add_special_tokens": False}
    return engine.post("/tokenize", body)["tokens"]


async def test_a_greedy_answer_stops_at_its_bound_by_either_name(customer: EngineCustomer) -> None:
    older = await customer.ask(messages=HELLO, temperature=0, max_tokens=3)
    newer = await customer.ask(messages=HELLO, temperature=0, max_completion_tokens=3)

    for answer in (older, newer):
        assert answer.choices[0].finish_reason == "length"
        assert answer.usage.completion_tokens == 3
    assert text_of_whole(older) == text_of_whole(newer)
    await customer.check(older, newer)


async def test_an_answer_ends_before_a_stop_word_that_is_paid_for(customer: EngineCustomer) -> None:
    free = await customer.ask(messages=HELLO, **GREEDY)
    text = text_of_whole(free)
    word = text.split()[3]
    stopped = await customer.ask(messages=HELLO, **GREEDY, stop=[word])

    assert stopped.choices[0].finish_reason == "stop"
    assert text_of_whole(stopped).rstrip() == text.partition(word)[0].rstrip()
    assert tokens_of(stopped.usage).output < tokens_of(free.usage).output
    await customer.check(free, stopped)


async def test_a_seed_repeats_a_random_answer(customer: EngineCustomer) -> None:
    asked: Any = GREEDY | {"messages": HELLO, "temperature": 1.8}

    answers = [await customer.ask(**asked, seed=seed) for seed in (1, 1, 2, 3)]

    texts = [text_of_whole(answer) for answer in answers]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1
    await customer.check(*answers)


async def test_a_narrow_nucleus_leaves_nothing_to_chance(customer: EngineCustomer) -> None:
    """Not the greedy answer: engines part ties in different ways."""
    asked: Any = GREEDY | {"messages": HELLO, "temperature": 1.8}

    wide = [await customer.ask(**asked, seed=seed) for seed in (1, 2, 3)]
    narrow = [await customer.ask(**asked, seed=seed, top_p=0.0001) for seed in (1, 2, 3)]

    assert len({text_of_whole(answer) for answer in wide}) > 1
    assert len({text_of_whole(answer) for answer in narrow}) == 1
    await customer.check(*wide, *narrow)


@pytest.mark.parametrize("penalty", ["frequency_penalty", "presence_penalty"])
async def test_a_penalty_makes_an_answer_repeat_itself_less(
    customer: EngineCustomer, penalty: str
) -> None:
    messages = [{"role": "user", "content": "Repeat the word yes ten times."}]

    free = await customer.ask(messages=messages, **GREEDY)
    varied = await customer.ask(messages=messages, **GREEDY, **{penalty: 2.0})

    yeses = [text_of_whole(answer).lower().count("yes") for answer in (varied, free)]
    assert yeses[0] < yeses[1]
    await customer.check(free, varied)


async def test_a_bias_forces_a_token(customer: EngineCustomer) -> None:
    (token,) = token_ids(customer.engine, "!")

    forced = await customer.ask(
        messages=HELLO, temperature=0, max_tokens=4, logit_bias={str(token): 100}
    )

    assert text_of_whole(forced) == "!!!!"
    await customer.check(forced)


async def test_json_mode_makes_an_object(customer: EngineCustomer) -> None:
    """Of a model that wants nothing but closing brackets."""
    (bracket,) = token_ids(customer.engine, "}")
    asked: Any = GREEDY | {"messages": HELLO, "logit_bias": {str(bracket): 100}}

    free = await customer.ask(**asked)
    held = await customer.ask(**asked, response_format={"type": "json_object"})

    assert text_of_whole(free) == "}" * ANSWER_TOKENS
    assert json.loads(text_of_whole(held)) == {}
    await customer.check(free, held)
