"""However a backend fails: what a caller reads are whole events that SDKs know, up to one end."""

import asyncio
import json
from typing import Any

import pytest

from tests.faults.upstream_faults import ANSWERED, BROKEN, FAULTS, cut
from tests.inference.answers import events
from tests.responses.conftest import RESTLESS_MODEL
from tests.support.deployment import MODEL, Deployment
from tests.support.gateway import TIMEOUT_SECONDS
from tests.upstream.exchanges import ExchangeOutcome

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/responses"
ENDINGS = {ANSWERED: "response.completed", BROKEN: "response.failed"}
BEGUN = {name: fault for name, fault in FAULTS.items() if fault.streamed in ENDINGS}


def scripted(script: dict[str, Any], model: str = MODEL) -> dict[str, Any]:
    return {"model": model, "stream": True, "input": json.dumps({"script": script})}


@pytest.mark.parametrize("name", BEGUN)
async def test_a_stream_that_began_has_one_end(deployment: Deployment, name: str) -> None:
    fault = BEGUN[name]
    async with deployment.customer() as client:
        answer = await client.post(PATH, json=scripted(fault.script))

    told = events(answer.content)
    ends = [event["type"] for event in told if event["type"] in ENDINGS.values()]
    assert ends == [told[-1]["type"]] == [ENDINGS[str(fault.streamed)]]
    assert [event["sequence_number"] for event in told] == list(range(len(told)))


async def test_a_failure_after_the_first_byte_says_why_and_repeats_nothing(
    deployment: Deployment,
) -> None:
    async with deployment.customer() as client:
        answer = await client.post(PATH, json=scripted(cut("close", 3, inside=True)))

    last = events(answer.content)[-1]["response"]
    assert last["error"]["code"] == "server_error"
    assert last["error"]["message"].startswith("The backend's answer broke off. Send the request")
    assert last["output"] == []
    assert last["usage"] is None


async def test_a_backend_that_pauses_too_long_in_its_answer_has_failed(
    deployment: Deployment,
) -> None:
    async with deployment.customer() as client:
        answer = await client.post(PATH, json=scripted(cut("stall", 3), RESTLESS_MODEL))

    last = events(answer.content)[-1]
    assert last["type"] == "response.failed"
    message = last["response"]["error"]["message"]
    assert message.startswith("The backend did not answer in time. Ask for less")


async def test_a_caller_who_leaves_is_charged_for_what_was_used(deployment: Deployment) -> None:
    body = scripted(cut("stall", 5))
    async with deployment.customer() as client, client.stream("POST", PATH, json=body) as answer:
        async for line in answer.aiter_lines():
            if "output_text.delta" in line:
                break
    exchange = list(deployment.upstream.seen)[-1]
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await exchange.stall()
        exchange.release()
        assert await exchange.end() in (ExchangeOutcome.COMPLETE, ExchangeOutcome.CALLER_LEFT)

    assert (await deployment.settled(1)).settled_pico_usd > 0
