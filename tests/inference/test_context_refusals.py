"""A prompt that is too long is told with its numbers, in the words that clients look for."""

import json
from typing import Any

import msgspec
import pytest

from tests.faults.test_upstream_faults import PATHS, body
from tests.support.deployment import MODEL, Deployment
from tests.support.shared_deployment import deployment, gateway, offered, upstream
from tests.upstream.scripts import UpstreamScript

__all__ = ["deployment", "gateway", "offered", "upstream"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOO_LONG = "request (4031 tokens) exceeds the available context size (2048 tokens)"
TOO_MUCH = "input length and `max_tokens` exceed context limit: 2000 + 100 > 2048"
WORDS = "maximum context length is 2048 tokens. The prompt has 4031 tokens"
OTHER = "The tools are not sound."


async def refused(
    deployment: Deployment, endpoint: str, words: str, *, is_stream: bool
) -> tuple[int, dict[str, Any]]:
    script = {"status": 400, "body": json.dumps({"error": {"message": words}})}
    deployment.upstream.queue(msgspec.convert(script, UpstreamScript))
    async with deployment.customer() as client:
        asked = body(endpoint, "Hi", model_id=MODEL, is_stream=is_stream)
        answer = await client.post(PATHS[endpoint], json=asked)
    record = await deployment.record(answer.headers["x-request-id"])
    assert (record["error_code"], record["failed_by"]) == (answer.json()["error"]["code"], "caller")
    assert record["cost"]["value"] == "0"
    return answer.status_code, answer.json()["error"]


@pytest.mark.parametrize(
    ("endpoint", "is_stream"),
    [
        (endpoint, is_stream)
        for endpoint in PATHS
        for is_stream in (False, True)
        if (endpoint, is_stream) != ("responses", True)
    ],
)
async def test_the_numbers_of_the_engine_are_told(
    deployment: Deployment, endpoint: str, *, is_stream: bool
) -> None:
    status, error = await refused(deployment, endpoint, TOO_LONG, is_stream=is_stream)

    assert (status, error["code"]) == (400, "context_length_exceeded")
    assert error["type"] == "invalid_request_error"
    if endpoint == "messages":
        assert error["message"] == "prompt is too long: 4031 tokens > 2048 maximum"
    else:
        assert WORDS in error["message"]


async def test_a_stream_of_responses_tells_it_in_events(deployment: Deployment) -> None:
    """Codex shortens by the last event, and SDKs raise the one before it, as from OpenAI."""
    deployment.upstream.queue(UpstreamScript(status=400, body={"error": {"message": TOO_LONG}}))
    async with deployment.customer() as client:
        asked = body("responses", "Hi", model_id=MODEL, is_stream=True)
        answer = await client.post(PATHS["responses"], json=asked)

    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
    told = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    assert [event["type"] for event in told] == [
        *("response.created", "response.in_progress", "error", "response.failed")
    ]
    assert [event["sequence_number"] for event in told] == [0, 1, 2, 3]
    *_, raised, last = told
    for error in (raised, raised["error"], last["response"]["error"]):
        assert error["code"] == "context_length_exceeded"
        assert WORDS in error["message"]
    assert raised["error"]["request_id"] == answer.headers["x-request-id"]
    record = await deployment.record(answer.headers["x-request-id"])
    assert (record["error_code"], record["failed_by"]) == ("context_length_exceeded", "caller")
    assert record["cost"]["value"] == "0"


async def test_too_much_output_is_told_as_such(deployment: Deployment) -> None:
    _, error = await refused(deployment, "messages", TOO_MUCH, is_stream=False)

    assert error["message"].startswith(
        "input length and `max_tokens` exceed context limit: 2000 + "
    )
    assert " > 2048, decrease input length" in error["message"]


@pytest.mark.parametrize("endpoint", PATHS)
async def test_other_words_stay_a_refusal_of_the_provider(
    deployment: Deployment, endpoint: str
) -> None:
    status, error = await refused(deployment, endpoint, OTHER, is_stream=False)

    assert (status, error["code"]) == (422, "provider_validation_failed")
    assert OTHER in error["message"]
