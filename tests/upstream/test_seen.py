"""What the upstream keeps of its callers, and how it is driven from another process."""

import asyncio
import json

import httpx2
import pytest

from tests.support.gateway import TIMEOUT_SECONDS
from tests.support.upstream import running_upstream, upstream_process
from tests.upstream.connection import Request, ScriptedConnection
from tests.upstream.exchanges import ExchangeOutcome
from tests.upstream.scripts import Cut, UpstreamScript
from tests.upstream.upstream import ScriptedUpstream
from tests.upstream.wire import HELLO, STREAM, ask, connect, request


async def test_requests_are_kept_with_their_headers(upstream: ScriptedUpstream) -> None:
    await ask(upstream)
    await ask(upstream, b"", path="/health", method="GET")

    (exchange,) = upstream.seen
    assert (exchange.method, exchange.path) == ("POST", "/v1/chat/completions")
    assert exchange.headers["authorization"] == "Bearer a-key"
    assert json.loads(exchange.body) == HELLO
    assert exchange.outcome is ExchangeOutcome.COMPLETE


async def test_a_caller_who_reads_slowly_is_waited_for(upstream: ScriptedUpstream) -> None:
    upstream.queue(UpstreamScript(tokens=100_000))
    reader, writer = await connect(upstream)
    writer.write(request(json.dumps(STREAM).encode()))

    exchange = await upstream.seen.arrival()
    await reader.readuntil(b"The")
    assert exchange.outcome is ExchangeOutcome.UNDER_WAY

    while b"[DONE]" not in await reader.read(1_000_000):
        pass
    assert await exchange.end() is ExchangeOutcome.COMPLETE
    writer.transport.abort()


async def test_a_connection_serves_one_request_after_the_other(
    upstream: ScriptedUpstream,
) -> None:
    reader, writer = await connect(upstream)

    writer.write(request(json.dumps(STREAM).encode()) + request(json.dumps(HELLO).encode()))

    assert (await reader.readuntil(b"0\r\n\r\n")).count(b"HTTP/1.1 200 OK") == 1
    assert b"chat.completion" in await reader.readuntil(b"}}")
    assert [exchange.number for exchange in upstream.seen] == [1, 2]
    writer.transport.abort()


async def test_what_is_no_http_ends_the_connection(upstream: ScriptedUpstream) -> None:
    reader, writer = await connect(upstream)

    writer.write(b"\x00nonsense\r\n\r\n")

    assert await reader.read() == b""
    writer.transport.abort()


async def test_stopping_ends_whatever_is_open() -> None:
    async with running_upstream() as upstream:
        upstream.queue(UpstreamScript(cut=Cut(how="stall")))
        _, writer = await connect(upstream)
        writer.write(request(json.dumps(HELLO).encode()))
        exchange = await upstream.seen.arrival()
        await exchange.stall()

    assert await exchange.end() is ExchangeOutcome.CALLER_LEFT
    assert upstream.connections_open == 0
    writer.transport.abort()


async def test_who_was_stopped_refuses_and_can_come_back(upstream: ScriptedUpstream) -> None:
    await upstream.stop()

    with pytest.raises(ConnectionRefusedError):
        await connect(upstream)
    await upstream.start(upstream.port)

    assert (await ask(upstream)).status == 200


def test_another_process_is_driven_over_http() -> None:
    with (
        upstream_process("--tokens", "3") as base_url,
        httpx2.Client(base_url=base_url, timeout=TIMEOUT_SECONDS, trust_env=False) as client,
    ):
        queued = {"script": {"status": 503}, "match": "day", "times": 2}
        origin = base_url.removesuffix("/v1")

        waiting = client.post(f"{origin}/script", json=queued)
        refused = client.post("/chat/completions", json=HELLO)
        cleared = client.delete(f"{origin}/script")
        answered = client.post("/chat/completions", json=HELLO)
        seen = client.get(f"{origin}/seen").json()
        unread = client.post(f"{origin}/script", json={"script": {"status": 1}})
        impossible = client.put(f"{origin}/script")

    assert waiting.json() == {"queued": 1}
    assert refused.status_code == 503
    assert cleared.json() == {"queued": 0}
    assert answered.json()["usage"]["completion_tokens"] == 3
    assert seen["connections_open"] == 1
    assert [request["outcome"] for request in seen["requests"]] == ["complete"] * 2
    assert json.loads(seen["requests"][0]["body"]) == HELLO
    assert (unread.status_code, impossible.status_code) == (400, 400)


async def test_a_connection_that_is_reset_before_it_is_made_is_reset_then() -> None:
    left = asyncio.Event()

    def serve(request: Request, connection: ScriptedConnection) -> None:
        raise AssertionError

    def accept() -> ScriptedConnection:
        connection = ScriptedConnection(serve, lambda _: left.set())
        connection.reset()
        return connection

    server = await asyncio.get_running_loop().create_server(accept, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        with pytest.raises(ConnectionResetError):
            await reader.read()
        await left.wait()
        writer.close()
