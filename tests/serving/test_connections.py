"""More connections than a worker may hold: idle ones make way, requests under way never do."""

import asyncio
import resource
import socket
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from tests.serving.applications import Receive, Send
from tests.serving.client import ask_once
from tests.serving.corpus import get, post
from tests.serving.raw import parse
from tests.serving.servers import START_SECONDS_MAX, Server, supervised
from tests.serving.test_protocol import TIMEOUT_SECONDS, Gate, Running, Streams, serving
from tollhouse.base.clock import HeldClock
from tollhouse.serving import descriptors
from tollhouse.serving.connections import (
    PARTIAL_HEADS_BYTES_MAX,
    UNSENT_BYTES_MAX,
    UNSENT_SECONDS_MAX,
    ClientConnections,
)
from tollhouse.serving.server import HttpServer

CONNECTIONS_MAX = 16
"""The least that a setting may say."""
LARGE_BYTES = 20_000_000


class Gates:
    """An application that answers each request when it is told to, and others at once."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.entered = 0
        self.left = 0
        self.received_bytes = 0
        self._progress = asyncio.Condition()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:  # noqa: ANN401
        if scope["path"] == "/refuse":
            await _refuse(receive, send)
            return
        if scope["path"] != "/wait":
            await _answer_large(send) if scope["path"] == "/large" else await _answer(send)
            return
        async with self._progress:
            self.entered += 1
            self._progress.notify_all()
        await self.gate(scope, lambda: self._counted(receive), send)

    async def _counted(self, receive: Receive) -> Any:  # noqa: ANN401 - one of ASGI's
        message = await receive()
        async with self._progress:
            self.left += message["type"] == "http.disconnect"
            self.received_bytes += len(message.get("body", b""))
            self._progress.notify_all()
        return message

    async def until_entered(self, count: int) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS), self._progress:
            await self._progress.wait_for(lambda: self.entered >= count)

    async def until_left(self, count: int) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS), self._progress:
            await self._progress.wait_for(lambda: self.left >= count)

    async def until_received(self, size_bytes: int) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS), self._progress:
            await self._progress.wait_for(lambda: self.received_bytes >= size_bytes)


async def _answer(send: Send, content: bytes = b"{}") -> None:
    headers = [(b"content-length", b"%d" % len(content))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": content})


async def _refuse(receive: Receive, send: Send) -> None:
    """Answer from the head alone, and read the body before the end, as the edge does."""
    headers = [(b"content-length", b"2"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b"{}", "more_body": True})
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.body", "body": b""})


async def _answer_large(send: Send) -> None:
    await _answer(send, b"x" * LARGE_BYTES)


def _at(server: Server) -> Running:
    """The same for a server in another process."""
    return Running(cast("HttpServer", None), server.address)


async def _connect(stack: AsyncExitStack, running: Running, *segments: bytes) -> Streams:
    return await stack.enter_async_context(running.connected(*segments))


async def _ask(streams: Streams) -> bytes:
    reader, writer = streams
    writer.write(get())
    return await reader.readuntil(b"{}")


async def _is_closed(streams: Streams) -> bool:
    """Whether the server has closed it, which has happened by the time it answers others."""
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await streams[0].read() == b""
    except ConnectionError:
        return True


async def _answers(streams: Streams) -> bool:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return (await _ask(streams)).startswith(b"HTTP/1.1 200")
    except (ConnectionError, asyncio.IncompleteReadError):
        return False


async def test_the_longest_idle_connections_make_way_for_new_ones() -> None:
    async with (
        serving(Gates(), connections_max=CONNECTIONS_MAX) as running,
        AsyncExitStack() as stack,
    ):
        kept = [await _connect(stack, running) for _ in range(CONNECTIONS_MAX)]
        for streams in kept:
            assert await _answers(streams)
        await _ask(kept[0])  # from now on the second one is the longest idle

        new = [await _connect(stack, running) for _ in range(3)]
        assert [await _answers(streams) for streams in new] == [True] * 3

        assert [await _is_closed(streams) for streams in kept[1:4]] == [True] * 3
        assert [await _answers(streams) for streams in (kept[0], *kept[4:])] == [True] * 13


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nX-Slow: "], ids=["nothing", "half"])
async def test_connections_without_a_whole_head_are_idle(sent: bytes) -> None:
    async with (
        serving(Gates(), connections_max=CONNECTIONS_MAX, header_seconds=3600) as running,
        AsyncExitStack() as stack,
    ):
        silent = [await _connect(stack, running, sent) for _ in range(CONNECTIONS_MAX)]

        new = [await _connect(stack, running) for _ in range(2)]
        assert [await _answers(streams) for streams in new] == [True] * 2

        assert [await _is_closed(streams) for streams in silent[:2]] == [True] * 2
        assert not silent[2][0].at_eof()


async def test_a_request_under_way_is_never_closed_for_another_caller() -> None:
    application = Gates()
    waiting = get(line=b"GET /wait HTTP/1.1")
    async with (
        serving(application, connections_max=CONNECTIONS_MAX) as running,
        AsyncExitStack() as stack,
    ):
        reader, writer = await _connect(stack, running, waiting)
        await application.until_entered(1)

        for _ in range(3 * CONNECTIONS_MAX):
            assert await _answers(await _connect(stack, running))
        application.gate.opened.set()
        writer.write(get(b"Connection: close"))

        statuses = [response.status for response in parse(await reader.read())[0]]
        assert statuses == [200, 200]


async def test_an_answer_that_is_still_read_is_not_cut() -> None:
    """The application has ended, but most of its answer waits for a slow reader."""
    async with (
        serving(Gates(), connections_max=CONNECTIONS_MAX) as running,
        AsyncExitStack() as stack,
    ):
        line = b"GET /large HTTP/1.1"
        reader, _ = await _connect(stack, running, get(b"Connection: close", line=line))
        await reader.readuntil(b"\r\n\r\n")

        for _ in range(2 * CONNECTIONS_MAX):
            assert await _answers(await _connect(stack, running))

        assert len(await reader.read()) == LARGE_BYTES


async def test_without_an_idle_connection_new_callers_wait_until_one_ends() -> None:
    application = Gates()
    waiting = get(line=b"GET /wait HTTP/1.1")
    async with (
        serving(application, connections_max=CONNECTIONS_MAX) as running,
        AsyncExitStack() as stack,
    ):
        for _ in range(CONNECTIONS_MAX):
            await _connect(stack, running, waiting)
        await application.until_entered(CONNECTIONS_MAX)
        late = await _connect(stack, running)
        asking = asyncio.create_task(_answers(late))
        await _until_accepting_is(running, expected=False)
        application.gate.opened.set()

        assert await asking
        await _until_accepting_is(running, expected=True)


async def _until_accepting_is(running: Running, *, expected: bool) -> None:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while running.server.is_accepting is not expected:  # noqa: ASYNC110 - has no event
            await asyncio.sleep(0.01)


async def test_refused_requests_whose_bodies_never_end_make_way_for_new_callers() -> None:
    """Their connections are not idle, and it takes no key to open them."""
    refused = post(b"Content-Length: 1000", line=b"POST /refuse HTTP/1.1", body=b"x")
    async with (
        serving(Gates(), connections_max=CONNECTIONS_MAX) as running,
        AsyncExitStack() as stack,
    ):
        for _ in range(CONNECTIONS_MAX):
            reader, _ = await _connect(stack, running, refused)
            await reader.readuntil(b"{}")

        for _ in range(CONNECTIONS_MAX):
            assert await _answers(await _connect(stack, running))


SLOW = post(b"Content-Length: 1000", line=b"POST /wait HTTP/1.1", body=b"x")


@pytest.mark.parametrize(
    "slow",
    [SLOW, post(b"Transfer-Encoding: chunked", line=b"POST /wait HTTP/1.1")],
    ids=["one byte", "no chunk"],
)
async def test_requests_whose_bodies_do_not_come_make_way_and_complete_ones_stay(
    slow: bytes,
) -> None:
    application = Gates()
    whole = post(b"Content-Length: 1", line=b"POST /wait HTTP/1.1", body=b"x")
    async with (
        serving(application, connections_max=CONNECTIONS_MAX) as running,
        AsyncExitStack() as stack,
    ):
        reader, _ = await _connect(stack, running, whole)
        stalled = [await _connect(stack, running, slow) for _ in range(CONNECTIONS_MAX - 1)]
        await application.until_entered(CONNECTIONS_MAX)

        new = [await _connect(stack, running, whole) for _ in range(CONNECTIONS_MAX - 1)]
        await application.until_entered(2 * CONNECTIONS_MAX - 1)

        assert [await _is_closed(streams) for streams in stalled] == [True] * len(stalled)
        application.gate.opened.set()
        for waiting in (reader, *(streams[0] for streams in new)):
            assert (await waiting.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")


async def test_of_bodies_that_come_the_one_without_progress_for_longest_makes_way() -> None:
    application = Gates()
    async with (
        serving(application, connections_max=CONNECTIONS_MAX) as running,
        AsyncExitStack() as stack,
    ):
        uploads = [await _connect(stack, running, SLOW) for _ in range(CONNECTIONS_MAX)]
        await application.until_entered(CONNECTIONS_MAX)
        uploads[0][1].write(b"x")
        await application.until_received(CONNECTIONS_MAX + 1)

        assert await _answers(await _connect(stack, running))

        assert await _is_closed(uploads[1])
        assert not uploads[0][0].at_eof()


async def test_a_request_cut_for_another_caller_ends_as_a_disconnect() -> None:
    application = Gates()
    async with (
        serving(application, connections_max=CONNECTIONS_MAX) as running,
        AsyncExitStack() as stack,
    ):
        for _ in range(CONNECTIONS_MAX):
            await _connect(stack, running, SLOW)
        await application.until_entered(CONNECTIONS_MAX)

        assert await _answers(await _connect(stack, running))

        await application.until_left(1)


@pytest.mark.parametrize(
    ("limit", "expected"), [(1, 1), (95, 36), (1024, 384), (20_000, 9872), (1_048_576, 524_160)]
)
def test_half_of_what_is_not_reserved_is_for_connections(limit: int, expected: int) -> None:
    assert descriptors.connections_max(limit) == expected


def _lower_limit(process_id: int, spare: int) -> None:
    """Let a process open `spare` more descriptors; the system gives the lowest that is free."""
    used = {int(entry.name) for entry in Path(f"/proc/{process_id}/fd").iterdir()}
    free = next(number for number in range(len(used) + 1) if number not in used)
    _, hard = resource.prlimit(process_id, resource.RLIMIT_NOFILE)
    resource.prlimit(process_id, resource.RLIMIT_NOFILE, (free + spare, hard))


def _restore_limit(process_id: int) -> None:
    _, hard = resource.prlimit(process_id, resource.RLIMIT_NOFILE)
    resource.prlimit(process_id, resource.RLIMIT_NOFILE, (hard, hard))


async def test_a_worker_may_open_as_many_descriptors_as_the_system_allows(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        async with supervised(tmp_path, "workers = 1") as server:
            process_id = (await ask_once(server.address))["pid"]
            limits = resource.prlimit(process_id, resource.RLIMIT_NOFILE)
            line = await server.wait_for_log("descriptor_limit")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    expected = min(hard, descriptors.DESCRIPTORS_MAX)
    assert limits == (expected, hard)
    assert f'"count":{expected}' in line


async def test_idle_connections_do_not_use_up_the_descriptors(tmp_path: Path) -> None:
    async with supervised(tmp_path, "workers = 1") as server, AsyncExitStack() as stack:
        process_id = (await ask_once(server.address))["pid"]
        _lower_limit(process_id, spare=60)
        for _ in range(150):
            await _connect(stack, _at(server), get())

        assert (await ask_once(server.address))["pid"] == process_id
        assert (await server.probe("/readyz")).statuses == (200,)
        assert "accept_paused" not in server.log()


async def test_a_worker_without_descriptors_is_not_ready_until_it_has_some(tmp_path: Path) -> None:
    async with supervised(tmp_path, "workers = 1") as server, AsyncExitStack() as stack:
        process_id = (await ask_once(server.address))["pid"]
        reader, writer = await asyncio.open_connection(*server.address)
        stack.callback(writer.close)
        line = b"POST /slow?seconds=600 HTTP/1.1"
        writer.write(post(b"Content-Length: 5", b"Expect: 100-continue", line=line))
        await reader.readuntil(b"100 Continue\r\n\r\n")
        writer.write(b"hello")  # from now on a complete request
        _lower_limit(process_id, spare=0)
        asking = asyncio.create_task(ask_once(server.address))

        reason = await server.wait_for_log("accept_paused")
        await _until_ready_is(server, 503)
        _restore_limit(process_id)
        await _until_ready_is(server, 200)

        assert "Too many open files" in reason
        assert (await asking)["pid"] == process_id


async def _until_ready_is(server: Server, status: int) -> None:
    async with asyncio.timeout(START_SECONDS_MAX):
        while (await server.probe("/readyz")).statuses != (status,):  # noqa: ASYNC110 - a probe is asked
            await asyncio.sleep(0.05)


async def test_heads_that_come_slowly_take_a_bounded_part_of_memory(tmp_path: Path) -> None:
    head_bytes = 60_000
    count = 2 * PARTIAL_HEADS_BYTES_MAX // head_bytes
    async with supervised(tmp_path, "workers = 1\nheader_seconds = 600.0") as server:
        process_id = (await ask_once(server.address))["pid"]
        before_bytes = _resident_bytes(process_id)
        async with AsyncExitStack() as stack:
            for _ in range(count):
                slow = b"GET / HTTP/1.1\r\nX-Slow: " + b"a" * head_bytes
                await _connect(stack, _at(server), slow)
            assert (await ask_once(server.address))["pid"] == process_id
            grown_bytes = _resident_bytes(process_id) - before_bytes

    assert grown_bytes < 1.5 * PARTIAL_HEADS_BYTES_MAX


def _resident_bytes(process_id: int) -> int:
    status = Path(f"/proc/{process_id}/status").read_text()
    lines = status.splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@dataclass(eq=False)
class Unread:
    """A connection whose peer does not read."""

    transport: asyncio.Transport


@pytest.mark.parametrize(
    ("unsent_bytes", "idle_seconds", "is_closable"),
    [
        (0, 0.0, True),
        (UNSENT_BYTES_MAX, UNSENT_SECONDS_MAX - 1, False),
        (UNSENT_BYTES_MAX, UNSENT_SECONDS_MAX, True),
        (UNSENT_BYTES_MAX + 1, UNSENT_SECONDS_MAX, False),
    ],
)
async def test_the_end_of_an_answer_that_nobody_reads_keeps_a_connection_for_a_while(
    unsent_bytes: int, idle_seconds: float, *, is_closable: bool
) -> None:
    clock = HeldClock(datetime(2026, 1, 1, tzinfo=UTC))
    connections = ClientConnections(connections_max=CONNECTIONS_MAX, clock=clock)
    ours, theirs = socket.socketpair()
    with theirs:
        transport, _ = await asyncio.get_running_loop().create_connection(
            asyncio.Protocol, sock=ours
        )
        while unsent_bytes and transport.get_write_buffer_size() == 0:
            transport.write(b"x" * 65_536)  # until the system takes no more
        transport.write(b"x" * (unsent_bytes - transport.get_write_buffer_size()))
        connection = Unread(transport)
        connections.add(connection)
        clock.advance(timedelta(seconds=idle_seconds))

        found = connections.next_to_close()
        transport.abort()

    assert found == (connection if is_closable else None)


class Abortable:
    """A connection that only tells whether it was aborted."""

    def __init__(self) -> None:
        self.transport = cast("asyncio.Transport", self)
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


def test_a_head_that_came_to_its_end_makes_room_for_others() -> None:
    clock = HeldClock(datetime(2026, 1, 1, tzinfo=UTC))
    connections = ClientConnections(connections_max=CONNECTIONS_MAX, clock=clock)
    refused, others = Abortable(), [Abortable(), Abortable()]
    for each in (refused, *others):
        connections.add(each)

    connections.set_partial_head(refused, PARTIAL_HEADS_BYTES_MAX)
    connections.set_partial_head(refused, 0)
    connections.set_partial_head(others[0], PARTIAL_HEADS_BYTES_MAX)
    assert not refused.is_aborted
    assert not others[0].is_aborted

    connections.set_partial_head(others[1], 1)
    assert [each.is_aborted for each in (refused, *others)] == [False, True, False]
