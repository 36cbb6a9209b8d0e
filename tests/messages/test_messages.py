"""Messages end to end: what is forwarded, answered, charged and recorded."""

import json
from typing import Any

import httpx2
import pytest

from tests.responses.conftest import PLAIN_MODEL
from tests.support.deployment import (
    CACHED_PICO_USD,
    COMPLETION_PICO_USD,
    MODEL,
    PROMPT_PICO_USD,
    Deployment,
)
from tests.support.routes import table
from tollhouse.api import routes as given
from tollhouse.api.router import Route

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/compat/anthropic/v1/messages"
COUNT_PATH = f"{PATH}/count_tokens"


def message(content: Any = "Say something.", **fields: object) -> dict[str, Any]:  # noqa: ANN401 - text or blocks
    """The body of a message."""
    messages = [{"role": "user", "content": content}]
    return {"model": MODEL, "max_tokens": 100, "messages": messages, **fields}


def scripted(**fields: object) -> str:
    """A message that tells the upstream how to answer."""
    return json.dumps({"script": fields})


def asked(deployment: Deployment) -> dict[str, Any]:
    """What the upstream was sent last."""
    return json.loads(list(deployment.upstream.seen)[-1].body)


def events(body: str) -> list[dict[str, Any]]:
    """The data of all events, each of which must name its type twice."""
    found: list[dict[str, Any]] = []
    for record in body.removesuffix("\n\n").split("\n\n"):
        name, data = record.split("\n")
        decoded = json.loads(data.removeprefix("data: "))
        assert name == f"event: {decoded['type']}"
        found.append(decoded)
    return found


async def test_a_message_is_charged_to_the_last_token_and_recorded(deployment: Deployment) -> None:
    async with deployment.customer() as client:
        answer = await client.post(PATH, json=message(scripted(cached_tokens=2)))

    body = answer.json()
    assert answer.status_code == httpx2.codes.OK
    assert answer.headers["request-id"] == answer.headers["x-request-id"]
    assert body["type"] == "message"
    assert body["model"] == MODEL
    assert [block["type"] for block in body["content"]] == ["text"]
    assert body["stop_reason"] == "end_turn"
    usage = body["usage"]
    assert usage["cache_read_input_tokens"] == 2
    credit = await deployment.settled(1)
    assert credit.settled_pico_usd == (
        usage["input_tokens"] * PROMPT_PICO_USD
        + usage["cache_read_input_tokens"] * CACHED_PICO_USD
        + usage["output_tokens"] * COMPLETION_PICO_USD
    )
    record = await deployment.record(answer.headers["x-request-id"])
    assert record["operation"] == "createMessage"
    assert record["model"] == MODEL
    assert record["status"] == httpx2.codes.OK


async def test_a_stream_adds_up_to_the_whole_answer(deployment: Deployment) -> None:
    body = message(scripted(tokens=20, reasoning_tokens=3), thinking={"type": "adaptive"})
    async with deployment.customer() as client:
        whole = (await client.post(PATH, json=body)).json()
        streamed = events((await client.post(PATH, json=body | {"stream": True})).text)

    assert [event["type"] for event in streamed[:2]] == ["message_start", "content_block_start"]
    assert [event["type"] for event in streamed[-2:]] == ["message_delta", "message_stop"]
    blocks: list[dict[str, Any]] = []
    for event in streamed:
        if event["type"] == "content_block_start":
            assert event["index"] == len(blocks)
            blocks.append(event["content_block"])
        elif event["type"] == "content_block_delta":
            assert event["index"] == len(blocks) - 1
            member = blocks[-1]["type"]
            blocks[-1][member] += event["delta"][member]
    assert blocks == whole["content"]
    assert [block["type"] for block in blocks] == ["thinking", "text"]
    assert streamed[-2]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert streamed[-2]["usage"] == whole["usage"]


async def test_counting_takes_what_a_message_takes(deployment: Deployment) -> None:
    edits = [{"type": "clear_thinking_20251015"}]
    body = message(context_management={"edits": edits})
    body.pop("max_tokens")
    body["messages"].append({"role": "system", "content": "Be brief."})
    headers = {"anthropic-beta": "some-flag-2026-01-01", "anthropic-version": "2023-06-01"}
    async with deployment.customer() as client:
        counted = await client.post(COUNT_PATH, json=body, headers=headers)
        flagged = await client.post(PATH, json=message(), headers=headers)
        dated = await client.post(PATH, json=message(), headers={"anthropic-version": "1999-01-01"})

    assert counted.json()["input_tokens"] > 0
    async with deployment.customer() as client:
        odd = await client.post(COUNT_PATH, json=body | {"context_management": [1]})
    assert (odd.status_code, odd.json()["error"]["param"]) == (400, "context_management")
    assert flagged.status_code == httpx2.codes.OK
    assert dated.status_code == httpx2.codes.BAD_REQUEST
    assert dated.json()["error"]["param"] == "anthropic-version"
    await deployment.settled(1)


async def test_v1_has_messages_only_where_the_operator_added_them(deployment: Deployment) -> None:
    def paths(routes: tuple[Route, ...]) -> set[str]:
        return {route.operation.path for route in routes}

    async with deployment.customer() as client:
        answer = await client.post("/v1/messages", json=message())

    assert answer.status_code == httpx2.codes.NOT_FOUND
    assert "/compat/anthropic" in answer.json()["error"]["message"]
    added = paths(table(given.routes, messages_under_v1=True)) - paths(table(given.routes))
    assert added == {"/v1/messages"}


async def test_a_model_without_reasoning_takes_adaptive_thinking_and_refuses_enabled(
    deployment: Deployment,
) -> None:
    wishes = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}
    enabled = {"thinking": {"type": "enabled", "budget_tokens": 10}}
    plain = {"model": PLAIN_MODEL}
    async with deployment.customer() as client:
        wished = await client.post(PATH, json=message() | plain | wishes)
        sent = asked(deployment)
        demanded = await client.post(PATH, json=message() | plain | enabled)
        reasoned = await client.post(PATH, json=message() | wishes)

    assert wished.status_code == httpx2.codes.OK
    assert "reasoning_effort" not in sent
    assert demanded.status_code == httpx2.codes.NOT_IMPLEMENTED
    assert demanded.json()["error"]["param"] == "thinking.type"
    assert reasoned.status_code == httpx2.codes.OK
    assert asked(deployment)["reasoning_effort"] == "high"
