"""Answers that break off, stall or come late, seen on the wire."""

import asyncio
import json
from typing import Any, Literal

import pytest

from tests.testing.wire import EITHER, HELLO, STREAM, ask, connect, request, with_script
from tollhouse.testing.connection import Request, ScriptedConnection
from tollhouse.testing.exchanges import ExchangeOutcome
from tollhouse.testing.scripts import Cut, UpstreamScript
from tollhouse.testing.upstream import ScriptedUpstream

Body = dict[str, Any]
Breaking = Literal["close", "reset"]


@EITHER
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_not_even_a_head(upstream: ScriptedUpstream, body: Body, how: Breaking) -> None:
    upstream.queue(UpstreamScript(cut=Cut(how=how)))

    wire = await ask(upstream, body)

    assert (wire.raw, wire.was_reset) == (b"", how == "reset")
    assert upstream.seen[0].outcome is ExchangeOutcome.CUT


@EITHER
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_head_and_nothing_more(
    upstream: ScriptedUpstream, body: Body, how: Breaking
) -> None:
    upstream.queue(UpstreamScript(cut=Cut(how=how, after=0)))

    wire = await ask(upstream, body)

    assert (wire.status, wire.body, wire.is_whole) == (200, b"", False)
    assert wire.was_reset == (how == "reset")


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_half_a_body(upstream: ScriptedUpstream, how: Breaking) -> None:
    upstream.queue(UpstreamScript(cut=Cut(how=how, after=0, inside=True)))

    wire = await ask(upstream)

    length = int(wire.headers["content-length"])
    assert len(wire.body) == length // 2
    assert wire.was_reset == (how == "reset")


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("inside", [False, True])
async def test_some_events_and_no_more(
    upstream: ScriptedUpstream, how: Breaking, inside: bool
) -> None:
    upstream.queue(UpstreamScript(cut=Cut(how=how, after=3, inside=inside)))

    wire = await ask(upstream, STREAM)

    assert len(wire.chunks) == 3
    assert (wire.raw.endswith(b"\r\n"), wire.is_whole) == (not inside, False)
    assert wire.was_reset == (how == "reset")
    assert upstream.seen[0].events_sent == 3


async def test_all_events_but_no_end(upstream: ScriptedUpstream) -> None:
    upstream.queue(UpstreamScript(tokens=1, cut=Cut(how="close", after=5)))

    wire = await ask(upstream, STREAM)

    assert wire.payloads()[-1] == "[DONE]"
    assert not wire.is_whole


# Waiting


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (Cut(how="stall"), b""),
        (Cut(how="stall", after=0), b"HTTP/1.1 200 OK\r\n"),
        (Cut(how="stall", after=2), b'"content":"The"'),
        (Cut(how="stall", after=2, inside=True), b'data: {"id"'),
    ],
)
@EITHER
async def test_a_stall_lasts_until_it_is_let_go(
    upstream: ScriptedUpstream, cut: Cut, said: bytes, body: Body
) -> None:
    if body is HELLO and cut.after == 2:
        cut = Cut(how="stall", after=0, inside=True)
        said = b'{"id"'
    upstream.queue(UpstreamScript(cut=cut))
    reader, writer = await connect(upstream)
    writer.write(request(json.dumps(body).encode()))

    exchange = await upstream.seen.arrival("Good day")
    await exchange.stall()

    before = await reader.readuntil(said) if said else b""
    assert exchange.outcome is ExchangeOutcome.UNDER_WAY
    exchange.release()
    assert await exchange.end() is ExchangeOutcome.COMPLETE
    end = b'"total_tokens":21}}' if body is HELLO else b"0\r\n\r\n"
    assert (before + await reader.readuntil(end)).count(b"HTTP/1.1") == 1
    writer.transport.abort()


@EITHER
@pytest.mark.parametrize("name", ["before_head_ms", "before_first_event_ms"])
async def test_a_delay_is_kept_before_head_and_first_event(
    upstream: ScriptedUpstream, name: str, body: Body
) -> None:
    clock = asyncio.get_running_loop().time
    began = clock()

    answer = await ask(upstream, with_script({name: 100}, body))

    assert answer.is_whole
    assert clock() - began >= 0.1


async def test_a_delay_is_kept_between_events(upstream: ScriptedUpstream) -> None:
    clock = asyncio.get_running_loop().time
    began = clock()

    stream = await ask(upstream, with_script({"between_events_ms": 10, "tokens": 8}, STREAM))

    assert len(stream.payloads()) == 12
    assert clock() - began >= 0.11


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
