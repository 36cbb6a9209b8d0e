"""The small real engine answers what the gateway will ask of it."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.request import urlopen

from tests.support.engine import Engine
from tests.support.gateway import TIMEOUT_SECONDS
from tollhouse.trial.llama import SLOT_TOKENS, SLOTS

HELLO: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Say hello."}],
    "max_tokens": 4,
    "temperature": 0,
}


def chat(engine: Engine, body: dict[str, Any] = HELLO) -> dict[str, Any]:
    return engine.post("/v1/chat/completions", body)


def test_it_counts_what_it_bills(llama_engine: Engine) -> None:
    answer = chat(llama_engine)
    counted = llama_engine.post("/v1/messages/count_tokens", HELLO | {"model": "smollm2-135m"})
    rendered = llama_engine.count_tokens(llama_engine.render(HELLO))

    assert answer["model"] == "smollm2-135m"
    assert answer["usage"]["completion_tokens"] == 4
    assert answer["usage"]["prompt_tokens"] == counted["input_tokens"] == rendered


def test_it_streams_with_usage(llama_engine: Engine) -> None:
    records = llama_engine.stream(HELLO | {"stream_options": {"include_usage": True}})

    assert records[-1]["usage"]["completion_tokens"] == 4


def test_it_serves_several_at_once_each_with_a_context_of_its_own(llama_engine: Engine) -> None:
    with urlopen(f"{llama_engine.origin}/props", timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - loopback
        properties = json.load(answer)

    with ThreadPoolExecutor(SLOTS) as callers:
        answers = list(callers.map(chat, [llama_engine] * SLOTS))

    assert properties["total_slots"] == SLOTS
    assert properties["default_generation_settings"]["n_ctx"] == SLOT_TOKENS
    assert [answer["usage"]["completion_tokens"] for answer in answers] == [4] * SLOTS
