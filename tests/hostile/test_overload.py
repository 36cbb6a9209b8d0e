"""A worker that receives more than it can handle answers what it accepts, and refuses the rest."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tests.hostile.clients import request_bytes
from tests.hostile.deployment import STEADY, Deployment, running_deployment
from tests.serving.raw import parse
from tests.support.deployment import chat
from tests.support.raw_streams import CHAT
from tollhouse.serving.load_shedder import PENDING_MAX, PENDING_TARGET
from tollhouse.settings import Settings

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

REQUESTS = 2 * PENDING_MAX
TIMEOUT_SECONDS = 60.0
TOKENS = 4

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connections(deployment: Deployment, count: int) -> AsyncGenerator[list[Streams]]:
    """Connections that the worker has accepted."""
    async with AsyncExitStack() as stack:
        opened: list[Streams] = []
        for _ in range(count):
            opened.append(await asyncio.open_connection(*deployment.address))
            stack.callback(opened[-1][1].transport.abort)
            assert (await ask(opened[-1], b"GET /v1 HTTP/1.1\r\nHost: gateway\r\n\r\n"))[0] == 404
        yield opened


async def ask(streams: Streams, request: bytes) -> tuple[int, str | None]:
    """The status, and `Retry-After`."""
    streams[1].write(request)
    return await answered(streams[0])


async def answered(reader: asyncio.StreamReader) -> tuple[int, str | None]:
    received = b""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not (responses := parse(received)[0]):
            data = await reader.read(65_536)
            assert data, "closed without an answer"
            received += data
    return responses[0].status, responses[0].headers.get("retry-after")


def keeping_connections(settings: Settings) -> Settings:
    """Idle connections stay open until all of them are, however long the machine stands still."""
    server = msgspec.structs.replace(
        settings.server,
        keep_alive_seconds=TIMEOUT_SECONDS,
        header_seconds=TIMEOUT_SECONDS,
        body_seconds=TIMEOUT_SECONDS,
        write_seconds=TIMEOUT_SECONDS,
    )
    return msgspec.structs.replace(settings, server=server)


@pytest_asyncio.fixture(loop_scope="session")
async def deployment(migrated_template: str, tmp_path: Path) -> AsyncIterator[Deployment]:
    async with running_deployment(migrated_template, tmp_path, keeping_connections) as running:
        yield running


@pytest.mark.guarantee("T46")
async def test_requests_beyond_what_a_worker_can_handle_are_shed(deployment: Deployment) -> None:
    customer = await deployment.customer()
    body = json.dumps(chat("Hello.", max_tokens=TOKENS) | {"model": STEADY}).encode()
    request = request_bytes(CHAT, customer.key, body)
    async with connections(deployment, REQUESTS) as opened:
        # All of them are there when the worker looks: no machine is too fast for that.
        os.kill(deployment.worker, signal.SIGSTOP)
        for _, writer in opened:
            writer.write(request)
        await asyncio.sleep(0)
        os.kill(deployment.worker, signal.SIGCONT)
        answers = await asyncio.gather(*(answered(reader) for reader, _ in opened))
        afterwards = await ask(opened[0], request)

    accepted = answers.count((200, None))
    assert accepted >= PENDING_TARGET
    assert answers.count((503, "1")) == REQUESTS - accepted > 0
    assert afterwards == (200, None)
    assert await customer.admitted() == accepted + 1
    await customer.assert_settled([])
    name = "tollhouse_requests_shed_total"
    lines = (await deployment.service.metrics()).splitlines()
    shed = next(float(line.split()[-1]) for line in lines if line.startswith(name))
    assert shed == REQUESTS - accepted
