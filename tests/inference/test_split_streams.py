"""A backend's stream cut anywhere, with text that looks like framing: callers read the same."""

import asyncio
import json
from typing import Any

import httpx2
import pytest

from tests.inference.answers import events
from tests.inference.test_chat import records
from tests.support.deployment import MODEL, Deployment, chat, model, offering
from tests.support.shared_deployment import deployment
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

__all__ = ["deployment"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

AT_ONCE = 16
TEXT = "é[DONE]\u2028data:\r\n\r\n[DONE]"
SCRIPT = {"text": TEXT, "line_end": "\r\n"}
USAGE = {"include_usage": True}


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    """Without what an engine may add to every record: the shorter it is, the fewer offsets."""
    return offering(settings, upstream.base_url, models={MODEL: model(features=[])}, takes=[])


def scripted(**more: object) -> str:
    """One word, however it is cut, so that the prompt costs the same."""
    return json.dumps({"script": SCRIPT | more}, separators=(",", ":"))


async def told_by_chat(client: httpx2.AsyncClient, **more: object) -> list[Any]:
    """Without what differs from one request to the next."""
    body = chat(scripted(**more), stream=True, stream_options=USAGE)
    told = records((await client.post("/v1/chat/completions", json=body)).text)
    for record in told[:-1]:
        del record["id"], record["created"]
    return told


async def stream_length(deployment: Deployment) -> int:
    """Of what the backend itself sends, in bytes."""
    body = json.loads(deployment.upstream.seen[-1].body)
    async with httpx2.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"{deployment.upstream.base_url}/chat/completions", json=body)
    assert "\u2028".encode() in answer.content
    assert answer.content.endswith(b"data: [DONE]\r\n\r\n")
    return len(answer.content)


@pytest.mark.guarantee("T31")
async def test_a_stream_cut_at_every_byte_gives_the_same_events(deployment: Deployment) -> None:
    room = asyncio.Semaphore(AT_ONCE)

    async def cut(client: httpx2.AsyncClient, at_byte: int) -> list[Any]:
        async with room:
            return await told_by_chat(client, split_at_byte=at_byte)

    async with deployment.customer() as client:
        whole = await told_by_chat(client)
        length = await stream_length(deployment)
        cuts = await asyncio.gather(*(cut(client, at_byte) for at_byte in range(1, length)))

    said = [record["choices"][0]["delta"].get("content") or "" for record in whole[:-2]]
    assert "".join(said) == TEXT
    assert whole[-1] == "[DONE]"
    assert {at for at, told in enumerate(cuts, start=1) if told != whole} == set()
    assert len(cuts) > 900
    exchanges = [exchange.events_sent for exchange in deployment.upstream.seen]
    assert len(set(exchanges)) == 1


@pytest.mark.guarantee("T31")
async def test_a_response_byte_by_byte_gives_the_same_events(deployment: Deployment) -> None:
    told: list[list[tuple[str, Any]]] = []
    async with deployment.customer() as client:
        for more in ({}, {"split_bytes": 1}):
            body = {"model": MODEL, "input": scripted(**more), "stream": True}
            answer = await client.post("/v1/responses", json=body)
            told.append([(event["type"], event.get("delta")) for event in events(answer.content)])

    assert told[0] == told[1]
    assert "".join(delta for kind, delta in told[0] if kind.endswith("text.delta")) == TEXT
