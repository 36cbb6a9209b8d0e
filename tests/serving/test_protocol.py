"""What a connection does between requests, around early answers, and while it is drained."""

import asyncio
import contextlib
import gc
import socket
import struct
import weakref
from collections.abc import AsyncGenerator, MutableMapping
from pathlib import Path
from typing import Any

import pytest

from tests.serving.applications import Echo, Receive, Send, answer, settings
from tests.serving.client import Client, ask_once
from tests.serving.corpus import HEADER_BYTES_MAX, chunked, get, padded, post, sized
from tests.serving.raw import exchange, parse
from tests.serving.servers import supervised
from tests.support.gateway import running_server
from tollhouse.serving.connections import LINGER_SECONDS
from tollhouse.serving.server import AsgiApplication, HttpServer, http_server

TIMEOUT_SECONDS = 30.0
"""Less than a connection may stay idle unless a test says otherwise."""

Scope = MutableMapping[str, Any]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Running:
    """A server in this process."""

    def __init__(self, server: HttpServer, address: tuple[str, int]) -> None:
        self.server = server
        self.address = address

    @contextlib.asynccontextmanager
    async def connected(self, *segments: bytes) -> AsyncGenerator[Streams]:
        reader, writer = await asyncio.open_connection(*self.address)
        try:
            for segment in segments:
                writer.write(segment)
                await writer.drain()
            yield reader, writer
        finally:
            writer.transport.abort()
            writer.close()


@contextlib.asynccontextmanager
async def serving(
    application: AsgiApplication | None = None,
    **bounds: Any,  # noqa: ANN401 - whatever the section holds
) -> AsyncGenerator[Running]:
    given = settings(**{"drain_seconds": 5.0, **bounds})
    server = http_server(application or Echo(given), given.server)
    async with running_server(server) as address:
        yield Running(server, address)


class Gate:
    """Answers when it is told to, and knows who has come and who has left."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        self.left = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        self.entered.set()
        gone = asyncio.create_task(self._watch(receive))
        await asyncio.wait(
            {asyncio.create_task(self.opened.wait()), gone}, return_when=asyncio.FIRST_COMPLETED
        )
        await answer(send, 200, {"path": scope["path"]})

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.left.set()


async def refuse_unread(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers from the head alone, as the edge does to a caller without a key."""
    await answer(send, 401, {"path": scope["path"]})


class EarlyRefusal:
    """Answers from the head alone, then reads what is left, as the edge does."""

    def __init__(self) -> None:
        self.received = b""
        self.ended = asyncio.Event()

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-length", b"2"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}", "more_body": True})
        while (message := await receive())["type"] == "http.request":
            self.received += message["body"]
            if not message["more_body"]:
                break
        await send({"type": "http.response.body", "body": b""})
        self.ended.set()


@pytest.mark.parametrize(
    "rest",
    [
        (b"5\r\nhello\r\n" * 1000 + b"0\r\n\r\n",),
        (b"not a chunk\r\n", b"0\r\n", b"\r\n"),
    ],
    ids=["chunks", "anything"],
)
async def test_chunks_are_not_parsed_any_more_once_their_request_is_refused(
    rest: tuple[bytes, ...],
) -> None:
    refusal = EarlyRefusal()
    async with serving(refusal) as running, running.connected(chunked(b"")) as (reader, writer):
        answered = await reader.readuntil(b"{}")
        for segment in rest:
            assert not refusal.ended.is_set()
            writer.write(segment)
            await writer.drain()
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await refusal.ended.wait()
            after = await reader.read()

    assert answered.startswith(b"HTTP/1.1 401")
    assert (refusal.received, after) == (b"", b"")


async def _responses(reader: asyncio.StreamReader) -> list[int]:
    return [response.status for response in parse(await reader.read())[0]]


@pytest.mark.parametrize(
    "bad",
    [b"garbage\r\n\r\n", padded(200_000), chunked(b"zz\r\n"), get(line=b"GET / HTTP/2.0")],
    ids=["garbage", "oversized head", "broken body", "wrong version"],
)
async def test_bad_bytes_behind_a_running_request_leave_it_alone(bad: bytes) -> None:
    gate = Gate()
    async with serving(gate) as running, running.connected(get()) as (reader, writer):
        await gate.entered.wait()
        writer.write(bad)
        await writer.drain()
        gate.opened.set()

        assert await _responses(reader) == [200]


async def test_a_body_that_breaks_is_answered_once_and_never_processed() -> None:
    gate = Gate()
    async with serving(gate) as running:
        async with running.connected(chunked(b"5\r\nhello\r\n"), b"zz\r\n") as (reader, _):
            statuses = await _responses(reader)

        assert statuses == [400]


async def test_an_application_hears_of_a_disconnect_while_another_request_waits() -> None:
    gate = Gate()
    async with serving(gate) as running:
        async with running.connected(get() + get()):
            await gate.entered.wait()
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await gate.left.wait()


async def test_an_application_that_fails_after_its_peer_left_harms_nobody() -> None:
    failed = asyncio.Event()

    async def fail_late(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await receive())["type"] != "http.disconnect":
            pass
        failed.set()
        message = "too late"
        raise RuntimeError(message)

    async with serving(fail_late) as running:
        async with running.connected(post(b"Content-Length: 5", body=b"he")) as (reader, _):
            await reader.readuntil(b"\r\n\r\n")
        await failed.wait()


async def test_an_answer_survives_that_the_peer_is_still_sending() -> None:
    """Closing with bytes unread would reset the connection before the answer was read."""
    async with serving(body_bytes_max=1024) as running:
        seen = await exchange(running.address, sized(b"x" * 20_000_000))

    assert seen.statuses == (413,)
    assert seen.is_closed


async def test_the_rest_of_an_answered_request_is_read_and_the_connection_kept() -> None:
    async with (
        serving(refuse_unread) as running,
        running.connected(post(b"Content-Length: 5", body=b"he")) as (reader, writer),
    ):
        first = await reader.readuntil(b"}")
        writer.write(b"llo" + get(b"Connection: close", line=b"GET /second HTTP/1.1"))
        second = await reader.read()

    assert first.startswith(b"HTTP/1.1 401")
    assert b"/second" in second


@pytest.mark.clock
async def test_the_rest_of_an_answered_request_is_not_awaited_forever() -> None:
    clock = asyncio.get_running_loop().time
    async with (
        serving(refuse_unread) as running,
        running.connected(post(b"Content-Length: 500", body=b"he")) as (reader, _),
    ):
        began = clock()
        statuses = await _responses(reader)
        took_seconds = clock() - began

    assert statuses == [401]
    assert LINGER_SECONDS - 0.1 < took_seconds < LINGER_SECONDS + 1


async def test_an_idle_connection_is_closed_without_a_word() -> None:
    async with serving(keep_alive_seconds=1.0) as running, running.connected(get()) as (reader, _):
        async with asyncio.timeout(TIMEOUT_SECONDS):
            statuses = await _responses(reader)

    assert statuses == [200]


async def test_a_second_head_has_a_deadline_of_its_own() -> None:
    async with serving(header_seconds=4.0) as running, running.connected(get()) as (reader, writer):
        await reader.readuntil(b"}")
        writer.write(b"GET /")
        async with asyncio.timeout(TIMEOUT_SECONDS):
            statuses = await _responses(reader)

    assert statuses == [408]


async def test_a_drained_connection_answers_what_is_already_on_its_way() -> None:
    async with serving() as running, Client(running.address) as client:
        await client.get("/first")
        (connection,) = running.server.server_state.connections
        asking = asyncio.create_task(client.get("/second"))
        await asyncio.sleep(0)
        connection.shutdown()
        response = await asking

    assert response.status == 200
    assert response.headers["connection"] == "close"


async def test_a_drained_connection_that_stays_idle_is_closed() -> None:
    async with serving() as running, running.connected(get()) as (reader, _):
        await reader.readuntil(b"}")
        (connection,) = running.server.server_state.connections
        connection.shutdown()
        async with asyncio.timeout(TIMEOUT_SECONDS):
            rest = await reader.read()

    assert rest == b""


async def test_no_timer_outlives_a_drained_connection_that_its_peer_resets() -> None:
    async with serving() as running, running.connected(get()) as (reader, writer):
        await reader.readuntil(b"}")
        (connection,) = running.server.server_state.connections
        connection.shutdown()
        kept = weakref.ref(connection)
        del connection
        reset = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)

    gc.collect()

    assert kept() is None


@pytest.mark.guarantee("T30")
async def test_a_trailer_never_becomes_a_header() -> None:
    body = b"5\r\nhello\r\n0\r\nAuthorization: Bearer stolen\r\n\r\n"
    async with serving() as running:
        seen = await exchange(running.address, chunked(body))

    assert "authorization" not in seen.responses[0].json()["headers"]


async def test_every_answer_has_a_date_and_none_names_the_server() -> None:
    async with serving() as running:
        good = await exchange(running.address, get())
        bad = await exchange(running.address, b"garbage\r\n\r\n")

    for seen in (good, bad):
        assert "date" in seen.responses[0].headers
        assert "server" not in seen.responses[0].headers


@pytest.mark.guarantee("T25")
async def test_oversized_heads_take_no_memory(tmp_path: Path) -> None:
    """T25: 20 MB of head are refused, and the worker grows by less than 5 MB."""
    async with supervised(tmp_path, "workers = 1") as server:
        process_id = (await ask_once(server.address))["pid"]
        await exchange(server.address, padded(HEADER_BYTES_MAX + 1))
        before_kilobytes = _peak_kilobytes(process_id)
        for _ in range(5):
            seen = await exchange(server.address, padded(20_000_000))
            assert seen.statuses == (431,)
        grown_kilobytes = _peak_kilobytes(process_id) - before_kilobytes

    assert grown_kilobytes < 5_000


def _peak_kilobytes(process_id: int) -> int:
    status = Path(f"/proc/{process_id}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
