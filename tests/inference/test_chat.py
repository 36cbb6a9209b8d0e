"""Chat through the whole gateway: what comes back, what it costs, what is written down."""

import json
from typing import Any

import httpx2
import pytest

from tests.identity.measures import counted
from tests.support.deployment import COMPLETION_PICO_USD, MODEL, PROMPT_PICO_USD, Deployment, chat

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/chat/completions"
FAILED_STREAMS = (
    'tollhouse_http_requests_total{operation="createChatCompletion",outcome="failed",status="200"}'
)


def records(text: str) -> list[Any]:
    """The records of a stream."""
    pieces = [piece for piece in text.split("\n\n") if piece]
    return [
        piece[6:] if piece == "data: [DONE]" else json.loads(piece.removeprefix("data: "))
        for piece in pieces
    ]


def cost(usage: dict[str, Any]) -> int:
    return (
        usage["prompt_tokens"] * PROMPT_PICO_USD + usage["completion_tokens"] * COMPLETION_PICO_USD
    )


async def test_an_answer_is_paid_for_to_the_last_token_and_written_down(
    deployment: Deployment,
) -> None:
    async with deployment.customer() as client:
        answer = await client.post(PATH, json=chat())

    body = answer.json()
    assert answer.status_code == httpx2.codes.OK, body
    assert body["model"] == MODEL
    assert body["choices"][0]["message"]["content"]
    credit = await deployment.settled(1)
    assert credit.settled_pico_usd == cost(body["usage"]) > 0
    record = await deployment.record(answer.headers["x-request-id"])
    assert record["status"] == httpx2.codes.OK
    assert record["model"] == MODEL


async def test_a_stream_says_the_same_and_costs_the_same(deployment: Deployment) -> None:
    async with deployment.customer() as client:
        whole = (await client.post(PATH, json=chat())).json()
        asked = chat(stream=True, stream_options={"include_usage": True})
        streamed = await client.post(PATH, json=asked)

    told = records(streamed.text)
    assert streamed.headers["content-type"] == "text/event-stream"
    assert streamed.headers["cache-control"] == "no-cache"
    assert told[-1] == "[DONE]"
    assert told[-2]["usage"] == whole["usage"]
    pieces = [r["choices"][0]["delta"].get("content") or "" for r in told[:-2]]
    assert "".join(pieces) == whole["choices"][0]["message"]["content"]
    credit = await deployment.settled(2)
    assert credit.settled_pico_usd == 2 * cost(whole["usage"])


async def test_nothing_is_charged_for_a_call_that_the_backend_refuses(
    deployment: Deployment,
) -> None:
    script = json.dumps({"script": {"status": 400}})
    async with deployment.customer() as client:
        answer = await client.post(PATH, json=chat(script))

    assert answer.status_code == httpx2.codes.UNPROCESSABLE_CONTENT
    assert answer.json()["error"]["code"] == "provider_validation_failed"
    credit = await deployment.settled(1)
    assert credit.settled_pico_usd == 0
    record = await deployment.record(answer.headers["x-request-id"])
    assert record["status"] == httpx2.codes.UNPROCESSABLE_CONTENT


async def test_what_breaks_after_the_first_byte_ends_by_a_record(deployment: Deployment) -> None:
    script = json.dumps(
        {"script": {"error": {"message": "out of memory"}, "error_after_events": 3}}
    )
    failed = counted(FAILED_STREAMS)
    async with deployment.customer() as client:
        answer = await client.post(PATH, json=chat(script, stream=True))

    told = records(answer.text)
    assert answer.status_code == httpx2.codes.OK
    assert told[-1]["error"]["code"] == "backend_error"
    assert told[-1]["error"]["request_id"] == answer.headers["x-request-id"]
    credit = await deployment.settled(1)
    assert credit.settled_pico_usd > 0
    record = await deployment.record(answer.headers["x-request-id"])
    assert (record["status"], record["error_code"]) == (httpx2.codes.OK, "backend_error")
    assert counted(FAILED_STREAMS) == failed + 1


async def test_tokens_of_a_message_are_counted_for_nothing(deployment: Deployment) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hello there."}]}
    async with deployment.customer() as client:
        answer = await client.post("/v1/messages/count_tokens", json=body)

    assert answer.status_code == httpx2.codes.OK, answer.text
    assert answer.json()["input_tokens"] > 0
    assert answer.headers["request-id"] == answer.headers["x-request-id"]
    assert (await deployment.credit()).settled_pico_usd == 0
