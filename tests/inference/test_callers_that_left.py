"""The record of a request whose caller disconnected before the answer was complete."""

import asyncio
import contextlib
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.identity.waiting import until
from tests.support.deployment import Deployment, chat
from tests.upstream.scripts import Cut, UpstreamScript

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/chat/completions"


async def only_record(deployment: Deployment) -> dict[str, Any]:
    """The record of the organization's only request, once it is written."""
    found: list[dict[str, Any]] = []

    async def is_written() -> bool:
        async with deployment.administrator() as client:
            answer = await client.get("/manage/v1/organization/requests")
        found.extend(answer.json()["data"])
        return bool(found)

    await until(is_written)
    (record,) = found
    return record


@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_caller_that_left_has_status_499_and_its_cost(
    deployment: Deployment, *, is_stream: bool
) -> None:
    stall = Cut(how="stall", after=1 if is_stream else 0)
    deployment.upstream.queue(UpstreamScript(text="one two three", cut=stall))
    async with deployment.customer() as client:
        asked = asyncio.create_task(client.post(PATH, json=chat(stream=is_stream)))
        exchange = await deployment.upstream.seen.arrival(nth=1)
        await exchange.stall()
        asked.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asked
    exchange.release()

    record = await only_record(deployment)

    assert record["status"] == 499
    assert record["error_code"] is None
    charged = (await deployment.settled(1)).settled_pico_usd
    assert charged > 0


async def test_a_refusal_keeps_its_status_if_its_caller_has_left(deployment: Deployment) -> None:
    stall = Cut(how="stall", after="request")
    deployment.upstream.queue(UpstreamScript(status=400, body={"error": {}}, cut=stall))
    async with deployment.customer() as client:
        asked = asyncio.create_task(client.post(PATH, json=chat()))
        exchange = await deployment.upstream.seen.arrival(nth=1)
        await exchange.stall()
        asked.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asked
    exchange.release()

    record = await only_record(deployment)

    assert record["status"] == 422
    assert record["error_code"] == "provider_validation_failed"


async def test_a_caller_that_closes_after_its_refusal_has_the_status_of_the_refusal(
    deployment: Deployment,
) -> None:
    """The answer is written while most of the body is still to come."""
    gateway = urlsplit(deployment.gateway.base_url)
    reader, writer = await asyncio.open_connection(gateway.hostname, gateway.port)
    lines = (
        f"POST {PATH} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {deployment.key.value}",
        "Content-Type: application/json",
        "Content-Length: 900000000",
        *("", "x" * 1_000),
    )
    writer.write("\r\n".join(lines).encode())
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    await reader.readexactly(length)
    writer.close()

    record = await only_record(deployment)

    assert head.startswith(b"HTTP/1.1 413")
    assert record["status"] == 413


@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_caller_that_stays_has_status_200(
    deployment: Deployment, *, is_stream: bool
) -> None:
    async with deployment.customer() as client:
        answer = await client.post(PATH, json=chat(stream=is_stream))

    assert (await deployment.record(answer.headers["x-request-id"]))["status"] == 200
