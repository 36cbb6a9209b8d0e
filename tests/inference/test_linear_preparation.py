"""What the gateway does with a request before it is paid for grows no faster than the request."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest

from tollhouse.base.ids import RequestId
from tollhouse.contract import decoding
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.messages import CountTokens
from tollhouse.contract.responses import ResponseRequest
from tollhouse.inference.chat import ChatEndpoint
from tollhouse.inference.messages.blocks import forwarded_input
from tollhouse.inference.messages.token_counter import estimate
from tollhouse.inference.meter import prompt_characters
from tollhouse.inference.responses.endpoint import ResponsesEndpoint
from tollhouse.ledger import bounds
from tollhouse.ledger.bounds import ModelBounds, TokenizerFamily

SIZE = 1_200
GROWTH = 4
SLACK = 2.5
"""Four times the size may take ten times as long; what is quadratic takes sixteen times."""
MODEL = ModelBounds(
    tokenizer=TokenizerFamily.BYTES, context_length=10**9, max_output_length=1_000, image_tokens=1
)
Body = dict[str, Any]


def chat(**fields: Any) -> Body:  # noqa: ANN401 - free-form
    return {"model": "m", "messages": [{"role": "user", "content": "x"}], **fields}


def response(**fields: Any) -> Body:  # noqa: ANN401 - free-form
    return {"model": "m", "input": "x", **fields}


def functions(size: int) -> list[Body]:
    return [{"type": "function", "name": f"f{number}"} for number in range(size)]


def chosen(size: int) -> Body:
    """Return a choice of the last tool, as often as there are tools."""
    last = {"type": "function", "name": f"f{size - 1}"}
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [last] * size}
    return response(tools=functions(size), tool_choice=choice)


def named(size: int) -> Body:
    tools = [{"type": "function", "function": {"name": f"f{number}"}} for number in range(size)]
    choice = {"type": "function", "function": {"name": f"f{size - 1}"}}
    return chat(tools=tools, tool_choice=choice)


def calls(size: int) -> list[Body]:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "x"}
    return [call, output] * (size // 2)


def prepare_chat(body: Body) -> None:
    request = decoding.decode(body, ChatRequest)
    endpoint = ChatEndpoint()
    translated = endpoint.translate(request, request_id=RequestId(UUID(int=1)), now=NOW)
    bounds.of_chat_request(translated.request, MODEL)
    prompt_characters(translated.request)


def prepare_response(body: Body) -> None:
    request = decoding.decode(body, ResponseRequest)
    endpoint = ResponsesEndpoint()
    translated = endpoint.translate(request, request_id=RequestId(UUID(int=1)), now=NOW)
    bounds.of_chat_request(translated.request, MODEL)
    prompt_characters(translated.request)


def prepare_count(body: Body) -> None:
    request = decoding.decode(body, CountTokens)
    forwarded_input(request, fetches_images=False)
    estimate(request, template_tokens=1, image_tokens=1)


NOW = datetime(2026, 1, 1, tzinfo=UTC)
MESSAGE: Body = {"role": "user", "content": "x"}
TEXT: Body = {"type": "text", "text": "x"}
INPUT_TEXT: Body = {"type": "input_text", "text": "x"}
CASES: dict[str, tuple[Callable[[Body], None], Callable[[int], Body]]] = {
    "chat messages": (prepare_chat, lambda size: chat(messages=[MESSAGE] * size)),
    "chat parts": (
        prepare_chat,
        lambda size: chat(messages=[{"role": "user", "content": [TEXT] * size}]),
    ),
    "chat empty parts": (
        prepare_chat,
        lambda size: chat(messages=[{"role": "user", "content": [{}] * size}]),
    ),
    "chat predicted parts": (
        prepare_chat,
        lambda size: chat(prediction={"type": "content", "content": [{}] * size}),
    ),
    "chat tool calls": (
        prepare_chat,
        lambda size: chat(messages=[{"role": "assistant", "tool_calls": [{}] * size}]),
    ),
    "chat tools and a choice": (prepare_chat, named),
    "chat functions": (prepare_chat, lambda size: chat(functions=[{"name": "f"}] * size)),
    "chat stop": (prepare_chat, lambda size: chat(stop=["x"] * size)),
    "chat logit_bias": (
        prepare_chat,
        lambda size: chat(logit_bias={str(number): 1 for number in range(size)}),
    ),
    "response items": (prepare_response, lambda size: response(input=[MESSAGE] * size)),
    "response parts": (
        prepare_response,
        lambda size: response(input=[{"role": "user", "content": [INPUT_TEXT] * size}]),
    ),
    "response calls": (prepare_response, lambda size: response(input=calls(size))),
    "response instructions": (
        prepare_response,
        lambda size: response(input=[{"role": "system", "content": "x"}] * size),
    ),
    "response allowed tools": (prepare_response, chosen),
    "count messages": (prepare_count, lambda size: chat(messages=[MESSAGE] * size)),
    "count blocks": (
        prepare_count,
        lambda size: chat(messages=[{"role": "user", "content": [TEXT] * size}]),
    ),
    "count tools": (prepare_count, lambda size: chat(tools=functions(size))),
}


TRIES = 3


def fastest_seconds(prepare: Callable[[Body], None], body: Body) -> float:
    """Return the least processor time of some runs, each with a copy of its own."""

    def once() -> float:
        own = msgspec.json.decode(msgspec.json.encode(body))
        began = time.thread_time()
        prepare(own)
        return time.thread_time() - began

    return min(once() for _ in range(5))


@pytest.mark.parametrize("case", CASES)
def test_four_times_the_size_takes_about_four_times_as_long(case: str) -> None:
    prepare, body_of = CASES[case]

    def is_linear() -> bool:
        small = fastest_seconds(prepare, body_of(SIZE))
        large = fastest_seconds(prepare, body_of(SIZE * GROWTH))
        return large < GROWTH * SLACK * small + 0.001

    # A busy machine can spoil one comparison; work that grows by the square spoils all of them.
    assert any(is_linear() for _ in range(TRIES))
