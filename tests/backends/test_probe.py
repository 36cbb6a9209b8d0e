"""Asking a replica how it is, over real connections."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from tollhouse.backends.health import credential_headers, probe

TIMEOUT_SECONDS = 120.0
NO_PATIENCE_SECONDS = 0.05
CREDENTIAL = "sk-hunter2"


@dataclass
class Peer:
    """A server that says one thing to whoever connects; nothing means silence until they leave."""

    answer: bytes | None
    port: int = 0
    heads: list[str] = field(default_factory=list[str])
    conversations: list["asyncio.Task[None]"] = field(default_factory=list["asyncio.Task[None]"])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.conversations.append(asyncio.create_task(self._converse(reader, writer)))

    async def left(self) -> None:
        """Wait until everybody who has connected is gone."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await asyncio.gather(*self.conversations)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head.decode())
            if self.answer is not None:
                writer.write(self.answer)
                writer.write_eof()
            await reader.read()
        writer.close()


@asynccontextmanager
async def listening(answer: bytes | None) -> AsyncGenerator[Peer]:
    peer = Peer(answer)
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
    peer.port = server.sockets[0].getsockname()[1]
    try:
        yield peer
    finally:
        await peer.left()
        server.close()
        await server.wait_closed()


@pytest.fixture
async def free_port() -> int:
    """Nobody listens there any more."""
    async with listening(None) as peer:
        return peer.port


def status(code: int, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {code} X", "content-length: 0", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


async def asked(peer: Peer, path: str = "/health", api_key: str | None = None) -> str | None:
    headers = credential_headers("openai", api_key)
    return await probe(peer.url, path, headers=headers, seconds=TIMEOUT_SECONDS)


@pytest.mark.parametrize("code", [200, 204, 404, 405])
async def test_a_replica_that_answers_is_well_with_or_without_a_health_route(code: int) -> None:
    async with listening(status(code)) as peer:
        assert await asked(peer) is None


@pytest.mark.parametrize("code", [302, 400, 401, 403, 429, 500, 503])
async def test_another_status_is_the_reason(code: int) -> None:
    location = "location: http://127.0.0.1:1/elsewhere"
    async with listening(status(code, location)) as peer:
        assert await asked(peer) == f"answers {code} to GET /health"

    assert len(peer.heads) == 1, "a redirect is not followed"


async def test_the_path_begins_at_the_host_and_the_credential_goes_with_it() -> None:
    async with listening(status(200)) as peer:
        await asked(peer, "/ping?deep=1", CREDENTIAL)
        await asked(peer)

    with_key, without = peer.heads
    assert with_key.startswith("GET /ping?deep=1 HTTP/1.1\r\n")
    assert f"authorization: bearer {CREDENTIAL}\r\n" in with_key.lower()
    assert without.startswith("GET /health HTTP/1.1\r\n")
    assert "authorization" not in without.lower()


async def test_nobody_there_is_said(free_port: int) -> None:
    url = f"http://127.0.0.1:{free_port}/v1"

    reason = await probe(url, "/health", headers=(), seconds=TIMEOUT_SECONDS)

    assert reason == "cannot be connected to"


async def test_a_name_that_nobody_has_is_said() -> None:
    reason = await probe("http://engine.invalid/v1", "/health", headers=(), seconds=TIMEOUT_SECONDS)

    assert reason == "cannot be connected to"


async def test_silence_ends_with_the_patience() -> None:
    async with listening(None) as peer:
        reason = await probe(peer.url, "/health", headers=(), seconds=NO_PATIENCE_SECONDS)

    assert reason == "does not answer within 0.05 s"


async def test_what_is_no_http_and_what_hangs_up_are_said() -> None:
    async with listening(b"220 mail.example ESMTP\r\n\r\n") as mail, listening(b"") as rude:
        reasons = [await asked(mail), await asked(rude)]

    assert reasons == ["does not answer in HTTP", "closes the connection without an answer"]


async def test_proxy_variables_are_not_believed(
    monkeypatch: pytest.MonkeyPatch, free_port: int
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port}")

    async with listening(status(200)) as peer:
        assert await asked(peer) is None


async def test_no_connection_is_left_open() -> None:
    async with listening(None) as silent, listening(status(500)) as failing:
        await probe(silent.url, "/health", headers=(), seconds=NO_PATIENCE_SECONDS)
        await asked(failing)

        await silent.left()
        await failing.left()
