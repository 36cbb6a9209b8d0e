"""A peer that does not read is cut off in time, at whatever point of the answer it stops."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.serving.raw import TIMEOUT_SECONDS
from tests.support.gateway import running_server
from tollhouse.api.body import ABORT
from tollhouse.serving.server import http_server
from tollhouse.settings import ServerSettings

WRITE_SECONDS = 0.8
LATE_SECONDS = 2.0
LARGE = b"x" * 4_000_000
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
Application = Callable[[Any, Any, Any], Awaitable[None]]


class Answering:
    """Sends `pieces`, and knows how it ended."""

    def __init__(self, *pieces: bytes, aborts: bool = False) -> None:
        self._pieces = pieces
        self._aborts = aborts
        self.has_ended = asyncio.Event()
        self.was_disconnected = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI's
        length = str(sum(map(len, self._pieces))).encode()
        head = {"type": "http.response.start", "status": 200}
        await send(head | {"headers": [(b"content-length", length)]})
        if self._aborts:
            scope["extensions"][ABORT]()
        for number, piece in enumerate(self._pieces, start=1):
            more = number < len(self._pieces)
            await send({"type": "http.response.body", "body": piece, "more_body": more})
        self.was_disconnected = (await receive())["type"] == "http.disconnect"
        self.has_ended.set()


@asynccontextmanager
async def serving(application: Application) -> AsyncGenerator[int]:
    server = http_server(application, ServerSettings(write_seconds=WRITE_SECONDS))
    async with running_server(server) as (_, port):
        yield port


def connected(port: int) -> socket.socket:
    """A peer whose kernel takes as little as a kernel can be made to take."""
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.connect(("127.0.0.1", port))
    peer.settimeout(0)
    peer.send(REQUEST)
    return peer


@pytest.mark.clock
@pytest.mark.parametrize("pieces", [(LARGE,), (LARGE[:100_000],) * 40], ids=["whole", "streamed"])
async def test_a_peer_that_does_not_read_is_cut(pieces: tuple[bytes, ...]) -> None:
    application = Answering(*pieces)
    async with serving(application) as port, asyncio.timeout(TIMEOUT_SECONDS):
        peer = connected(port)
        began = asyncio.get_running_loop().time()

        await application.has_ended.wait()

        assert application.was_disconnected
        waited_seconds = asyncio.get_running_loop().time() - began
        assert WRITE_SECONDS <= waited_seconds < WRITE_SECONDS + LATE_SECONDS
        peer.close()


@pytest.mark.clock
async def test_a_byte_now_and_then_is_no_progress() -> None:
    application = Answering(LARGE)
    async with serving(application) as port, asyncio.timeout(TIMEOUT_SECONDS):
        peer = connected(port)
        loop = asyncio.get_running_loop()
        while not application.has_ended.is_set():
            await asyncio.wait(
                [asyncio.ensure_future(application.has_ended.wait())], timeout=WRITE_SECONDS / 4
            )
            if not application.has_ended.is_set():
                await loop.sock_recv(peer, 1)

        assert application.was_disconnected
        peer.close()


async def test_a_peer_that_reads_slowly_gets_everything() -> None:
    application = Answering(LARGE)
    received = 0
    async with serving(application) as port, asyncio.timeout(TIMEOUT_SECONDS):
        peer = connected(port)
        loop = asyncio.get_running_loop()
        pauses = 3
        while received < len(LARGE):
            received += len(await loop.sock_recv(peer, 65_536))
            if pauses and received > len(LARGE) // 4 * (4 - pauses):
                pauses -= 1
                await asyncio.sleep(WRITE_SECONDS / 2)
        peer.close()

    assert received > len(LARGE)


async def test_an_application_can_cut_its_peer() -> None:
    application = Answering(LARGE, aborts=True)
    async with serving(application) as port, asyncio.timeout(TIMEOUT_SECONDS):
        peer = connected(port)
        await application.has_ended.wait()

        received = b""
        while piece := await asyncio.get_running_loop().sock_recv(peer, 65_536):
            received += piece
        peer.close()

    assert len(received) < len(LARGE)


@pytest.mark.clock
async def test_time_between_two_answers_is_no_time_without_progress() -> None:
    application = Answering(LARGE)
    async with serving(application) as port, asyncio.timeout(TIMEOUT_SECONDS):
        peer = connected(port)
        loop = asyncio.get_running_loop()
        for _ in range(2):
            received = 0
            while received < len(LARGE):
                received += len(await loop.sock_recv(peer, 65_536))
            # That time passes on an idle connection is what is tried.
            await asyncio.sleep(2 * WRITE_SECONDS)
            await loop.sock_sendall(peer, REQUEST)
        await asyncio.sleep(WRITE_SECONDS / 2)

        assert await loop.sock_recv(peer, 65_536) != b""
        peer.close()
