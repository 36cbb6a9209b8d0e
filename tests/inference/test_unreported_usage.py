"""Through the gateway: what callers and operators see of usage that the engine did not report."""

import json
from typing import Any

import pytest

from tests.inference.test_chat import records
from tests.support.deployment import COMPLETION_PICO_USD, PROMPT_PICO_USD, Deployment, chat
from tollhouse.observability import registry

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
TEXT = "one two three four five six seven eight"
TEXT_TOKENS = 10
ESTIMATED = 'tollhouse_usage_estimated_total{backend="scripted"}'


def scripted(**script: object) -> str:
    return json.dumps({"script": {"text": TEXT, **script}})


def estimated_requests() -> float:
    lines = registry.exposition(None).decode().splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith(ESTIMATED)), 0.0)


async def resolution(deployment: Deployment) -> dict[str, Any]:
    """What the ledger says about the end of the only request."""
    await deployment.settled(1)
    (row,) = await deployment.org.database.fetch_all(
        "SELECT * FROM ledger_entries WHERE organization_id = $1 AND phase = 1",
        deployment.org.organization_id,
    )
    return dict(row)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("usage", [None, "nonsense", {"completion_tokens": -1}])
async def test_usage_that_no_engine_reported_is_null_and_recorded_as_an_estimate(
    deployment: Deployment, *, stream: bool, usage: object
) -> None:
    content, before = scripted(usage=usage), estimated_requests()
    options: dict[str, Any] = {"stream_options": {"include_usage": True}} if stream else {}
    async with deployment.customer() as client:
        answer = await client.post(CHAT, json=chat(content, stream=stream, **options))

    shown = records(answer.text)[-2] if stream else answer.json()
    assert shown["usage"] is None
    assert shown["choices"] == [] or not stream
    entry = await resolution(deployment)
    assert (entry["input_tokens"], entry["output_tokens"]) == (-(-len(content) // 4), TEXT_TOKENS)
    assert entry["is_estimated"]
    record = await deployment.record(answer.headers["x-request-id"])
    assert record["estimated"]
    assert record["tokens"]["output"] == TEXT_TOKENS
    assert estimated_requests() - before == 1


async def test_reported_usage_is_no_estimate(deployment: Deployment) -> None:
    async with deployment.customer() as client:
        answer = await client.post(CHAT, json=chat(scripted()))

    assert answer.json()["usage"]["completion_tokens"] > 0
    assert not (await resolution(deployment))["is_estimated"]
    assert not (await deployment.record(answer.headers["x-request-id"]))["estimated"]


@pytest.mark.parametrize("stream", [False, True])
async def test_responses_show_the_estimate_that_is_charged(
    deployment: Deployment, *, stream: bool
) -> None:
    body = chat(stream=stream) | {"input": scripted(usage=None)}
    del body["messages"]
    async with deployment.customer() as client:
        answer = await client.post(RESPONSES, json=body)

    events = answer.text.strip().split("\ndata: ")
    shown = json.loads(events[-1])["response"] if stream else answer.json()
    entry = await resolution(deployment)
    assert shown["usage"]["output_tokens"] == entry["output_tokens"] == TEXT_TOKENS
    assert shown["usage"]["input_tokens"] == entry["input_tokens"]
    assert (await deployment.record(answer.headers["x-request-id"]))["estimated"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_report_above_the_bound_is_charged_at_the_bound_and_the_excess_recorded(
    deployment: Deployment, *, stream: bool
) -> None:
    content = scripted(usage={"prompt_tokens": 9, "completion_tokens": 900})
    async with deployment.customer() as client:
        await client.post(CHAT, json=chat(content, stream=stream, max_tokens=20))

    entry = await resolution(deployment)
    assert entry["output_tokens"] == 20
    assert entry["posted_pico"] == 9 * PROMPT_PICO_USD + 20 * COMPLETION_PICO_USD
    assert entry["excess_pico"] == 880 * COMPLETION_PICO_USD
    assert entry["operator_pays"] == "above_hold"
    assert not entry["is_estimated"]
