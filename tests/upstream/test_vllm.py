"""The large real engine has what the gateway makes use of."""

from typing import Any

import pytest

from tests.support.engine import Engine
from tests.support.vllm import NAME

pytestmark = pytest.mark.vllm

MESSAGES = [{"role": "user", "content": "Say hello."}]
HELLO: dict[str, Any] = {"model": NAME, "messages": MESSAGES, "max_tokens": 4, "temperature": 0}
LONG = "The gate is open and the toll is paid. " * 60
FORECAST = {
    "type": "function",
    "function": {
        "name": "forecast",
        "parameters": {"type": "object", "properties": {"days": {"enum": [3]}}},
    },
}


def chat(engine: Engine, **members: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return engine.post("/v1/chat/completions", HELLO | members)


def cached_tokens(answer: dict[str, Any]) -> int:
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def test_every_way_to_count_gives_what_is_billed(vllm_engine: Engine) -> None:
    billed = chat(vllm_engine)["usage"]["prompt_tokens"]
    counted = vllm_engine.post(
        "/v1/messages/count_tokens", {"model": NAME, "messages": MESSAGES, "max_tokens": 1}
    )
    tokenized = vllm_engine.post("/tokenize", {"model": NAME, "messages": MESSAGES})

    assert counted["input_tokens"] == tokenized["count"] == billed


def test_usage_in_every_record_is_that_of_its_choice(vllm_engine: Engine) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}

    records = vllm_engine.stream(HELLO | {"n": 2, "temperature": 1, "stream_options": options})

    assert all("usage" in record for record in records)
    assert max(record["usage"]["completion_tokens"] for record in records[:-1]) <= 4
    assert records[-1]["choices"] == []
    assert records[-1]["usage"]["completion_tokens"] <= 8


def test_logprobs_of_the_prompt_begin_with_nothing(vllm_engine: Engine) -> None:
    answer = chat(vllm_engine, prompt_logprobs=1)

    assert answer["prompt_logprobs"][0] is None
    assert len(answer["prompt_logprobs"]) == answer["usage"]["prompt_tokens"]


def test_a_tool_can_be_forced(vllm_engine: Engine) -> None:
    answer = chat(vllm_engine, tools=[FORECAST], tool_choice="required", max_tokens=60)

    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "forecast"


def test_a_salt_parts_the_caches_of_two_tenants(vllm_replicas: tuple[Engine, Engine]) -> None:
    first, second = vllm_replicas
    prompt = [{"role": "user", "content": LONG}]

    cold = chat(first, messages=prompt, cache_salt="one")
    warm = chat(first, messages=prompt, cache_salt="one")
    other_tenant = chat(first, messages=prompt, cache_salt="two")
    other_replica = chat(second, messages=prompt, cache_salt="one")

    assert cached_tokens(cold) == 0
    assert cached_tokens(warm) > 0
    assert cached_tokens(other_tenant) == 0
    assert cached_tokens(other_replica) == 0
