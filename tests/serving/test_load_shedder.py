"""An overloaded worker refuses new requests at once, and never one that it has accepted."""

import asyncio
import json
from collections.abc import AsyncGenerator, MutableMapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.serving.applications import Receive, Send, answer
from tests.serving.corpus import get, post, sized
from tests.serving.raw import Response, exchange
from tests.serving.test_protocol import Running, serving
from tollhouse.api.body import ADMITTED
from tollhouse.base.clock import HeldClock
from tollhouse.serving.load_shedder import (
    ADMIN_RESERVE,
    BURST_SECONDS,
    CALM_SECONDS,
    PENDING_MAX,
    PENDING_TARGET,
    LoadShedder,
)
from tollhouse.serving.refusals import OverloadRefusals

Scope = MutableMapping[str, Any]


class VirtualShedder:
    """A shedder whose time passes when the test says so."""

    def __init__(self) -> None:
        self._clock = HeldClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.shedder = LoadShedder(self._clock, OverloadRefusals(documentation_url=None))

    def sheds(
        self, *, pending: int, after_seconds: float = 0.0, path: str = "/v1/chat/completions"
    ) -> bool:
        self._clock.advance(timedelta(seconds=after_seconds))
        self.shedder.pending = pending
        return self.shedder.must_shed(path)


def test_fewer_than_the_target_are_always_accepted() -> None:
    worker = VirtualShedder()

    assert not any(
        worker.sheds(pending=PENDING_TARGET - 1, after_seconds=BURST_SECONDS) for _ in range(100)
    )


def test_a_burst_passes() -> None:
    worker = VirtualShedder()

    assert not worker.sheds(pending=PENDING_TARGET)
    assert not worker.sheds(pending=PENDING_MAX - 1, after_seconds=BURST_SECONDS / 2)


@pytest.mark.guarantee("T46")
@pytest.mark.parametrize("path", ["/manage/v1/organization", "/v1/organization/costs"])
def test_administration_has_a_small_reserve_while_other_requests_are_shed(path: str) -> None:
    worker = VirtualShedder()
    worker.sheds(pending=PENDING_TARGET)

    assert worker.sheds(pending=PENDING_TARGET, after_seconds=BURST_SECONDS)
    assert not worker.sheds(pending=PENDING_TARGET + ADMIN_RESERVE - 1, path=path)
    assert worker.sheds(pending=PENDING_TARGET + ADMIN_RESERVE, path=path)
    assert worker.sheds(pending=PENDING_TARGET + ADMIN_RESERVE, path="/v1/organizations")


def test_no_burst_is_larger_than_the_maximum() -> None:
    assert VirtualShedder().sheds(pending=PENDING_MAX)


@pytest.mark.guarantee("T46")
def test_requests_that_stay_pending_for_a_tenth_of_a_second_are_an_overload() -> None:
    worker = VirtualShedder()
    worker.sheds(pending=PENDING_TARGET)

    assert worker.sheds(pending=PENDING_TARGET, after_seconds=0.1)


def test_an_overloaded_worker_accepts_what_it_can_handle() -> None:
    worker = VirtualShedder()
    worker.sheds(pending=PENDING_TARGET)
    worker.sheds(pending=PENDING_TARGET, after_seconds=BURST_SECONDS)

    assert not worker.sheds(pending=PENDING_TARGET - 1)
    assert worker.sheds(pending=PENDING_TARGET, after_seconds=CALM_SECONDS / 2)


def test_another_burst_passes_once_the_worker_was_calm() -> None:
    worker = VirtualShedder()
    worker.sheds(pending=PENDING_TARGET)
    worker.sheds(pending=PENDING_TARGET, after_seconds=BURST_SECONDS)

    assert not worker.sheds(pending=PENDING_TARGET, after_seconds=CALM_SECONDS)


class Busy:
    """Answers nothing on `/busy` until it is released; admits `/admitted` before it waits."""

    def __init__(self) -> None:
        self.entered = 0
        self.released = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/admitted":
            scope["extensions"][ADMITTED]()
        if scope["path"] in {"/busy", "/admitted"}:
            self.entered += 1
            await self.released.wait()
        while (await receive()).get("more_body"):
            pass
        await answer(send, 200, {})


async def occupy(running: Running, busy: Busy, request: bytes, stack: AsyncExitStack) -> None:
    """Send requests until the application handles `PENDING_MAX` of them.

    On a machine that stood still some come too late for the burst; others are sent instead.
    """
    while (missing := PENDING_MAX - busy.entered) > 0:
        goal = PENDING_MAX
        opened = [await stack.enter_async_context(running.connected()) for _ in range(missing)]
        for _, writer in opened:
            writer.write(request)
        heads = [asyncio.create_task(reader.readuntil(b"\r\n\r\n")) for reader, _ in opened]
        while busy.entered + (refused := sum(head.done() for head in heads)) < goal:  # noqa: ASYNC110 - the application has no event
            await asyncio.sleep(0.01)
        for head in heads:
            head.cancel()
        if refused:
            await asyncio.sleep(CALM_SECONDS)


@asynccontextmanager
async def occupied(request: bytes) -> AsyncGenerator[Running]:
    """A server that handles `PENDING_MAX` such requests; at the end it must answer as usual."""
    busy = Busy()
    async with serving(busy) as running, AsyncExitStack() as stack:
        await occupy(running, busy, request, stack)
        yield running
        busy.released.set()
        await asyncio.sleep(0)
        assert (await exchange(running.address, get())).statuses == (200,)


STARTED = b"HTTP/1.1 503"
UNSENT_BYTES_MAX = 4_000_000
"""The refusals of what one read of the socket brings."""
BUSY = get(line=b"GET /busy HTTP/1.1")


async def refused(running: Running, *segments: bytes) -> Response:
    """The one answer to these bytes, which must be 503."""
    seen = await exchange(running.address, *segments)
    assert seen.statuses == (503,)
    return seen.responses[0]


async def test_a_request_beyond_the_maximum_is_told_when_to_come_back() -> None:
    async with occupied(BUSY) as running:
        response = await refused(running, sized(b"hello"))

    error = response.json()["error"]
    assert response.headers["retry-after"] == "1"
    assert "connection" not in response.headers
    assert (error["code"], error["type"]) == ("server_is_overloaded", "service_unavailable_error")
    assert error["request_id"] == response.headers["x-request-id"]
    assert UUID(error["request_id"]).version == 7


async def test_token_counting_is_refused_in_its_own_form() -> None:
    line = b"POST /v1/messages/count_tokens?beta=true HTTP/1.1"
    async with occupied(BUSY) as running:
        response = await refused(running, post(b"Content-Length: 2", body=b"{}", line=line))

    assert response.json()["type"] == "error"
    assert response.json()["error"]["type"] == "overloaded_error"
    assert response.headers["request-id"] == response.headers["x-request-id"]


async def test_refusals_leave_the_connection_as_it_is() -> None:
    async with occupied(BUSY) as running:
        seen = await exchange(running.address, sized(b"hello") + get(), get(), answers=3)

    assert seen.statuses == (503, 503, 503)
    assert not seen.is_closed
    assert len({response.headers["x-request-id"] for response in seen.responses}) == 3


@pytest.mark.parametrize(
    "request_bytes",
    [
        post(b"Content-Length: 5", body=b"he"),
        post(b"Transfer-Encoding: chunked", body=b"5\r\nhello\r\n"),
        get(b"Connection: close"),
        get(line=b"GET / HTTP/1.0"),
    ],
    ids=["part of a body", "part of the chunks", "closing", "HTTP/1.0"],
)
async def test_a_connection_that_cannot_go_on_is_closed_after_the_refusal(
    request_bytes: bytes,
) -> None:
    async with occupied(BUSY) as running:
        response = await refused(running, request_bytes)

    assert response.headers["connection"] == "close"


@pytest.mark.parametrize("path", [b"/v1/messages/count_tokens?beta=true", b"/v1/models", b"/%6d"])
async def test_a_whole_request_is_refused_as_one_that_comes_in_pieces(path: bytes) -> None:
    """Whole ones are not read as others are, which would take longer."""
    request = post(b"Content-Length: 2", body=b"{}", line=b"POST " + path + b" HTTP/1.1")
    async with occupied(BUSY) as running:
        whole = await exchange(running.address, request, request, answers=2)
        pieces = await exchange(running.address, request[:20], request[20:], request, answers=2)

    assert whole.statuses == pieces.statuses == (503, 503)
    first, second = (_without_id(each) for each in (whole.responses[0], pieces.responses[0]))
    assert first == second


async def test_no_more_requests_are_read_while_their_refusals_are_not() -> None:
    count = 100_000
    async with occupied(BUSY) as running, running.connected() as (reader, writer):
        writer.write(get() * count)
        for _ in range(200):
            await asyncio.sleep(0)
        connections = running.server.server_state.connections
        unsent_bytes = max(each.transport.get_write_buffer_size() for each in connections)
        received = b""
        answers = 0
        while answers < count:
            received = received[-len(STARTED) + 1 :] + await reader.read(1_000_000)
            answers += received.count(STARTED)

    assert 0 < unsent_bytes < UNSENT_BYTES_MAX


async def test_a_head_that_begins_behind_a_request_goes_on_after_it() -> None:
    """The rest of the head looks like a request of its own."""
    begun = get() + b"POST /echo HTTP/1.1\r\nHost: localhost\r\nX: "
    seen: list[str] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(f"{scope['method']} {scope['path']}")
        await busy(scope, receive, send)

    busy = Busy()
    async with serving(application) as running, AsyncExitStack() as stack:
        await occupy(running, busy, BUSY, stack)
        reader, writer = await stack.enter_async_context(running.connected(begun))
        await reader.readuntil(b"\r\n\r\n")
        writer.write(get(line=b"GET /within HTTP/1.1"))
        await reader.readuntil(b"HTTP/1.1 503")
        busy.released.set()
        await asyncio.sleep(0)
        writer.write(get(line=b"GET /after HTTP/1.1"))
        await reader.readuntil(b"HTTP/1.1 200")

    assert seen[-1] == "GET /after"
    assert "GET /within" not in seen


@pytest.mark.parametrize("path", [b"/manage/v1/organization", b"/%6danage/v1", b"http://a/manage"])
def test_a_whole_request_of_administration_is_read_while_its_reserve_lasts(path: bytes) -> None:
    worker = VirtualShedder()
    worker.sheds(pending=PENDING_TARGET)
    assert worker.sheds(pending=PENDING_TARGET, after_seconds=BURST_SECONDS)

    request = get(line=b"GET " + path + b" HTTP/1.1")
    assert worker.shedder.refusal_of_whole(request, []) is None
    other = get(line=b"GET /v1/models HTTP/1.1")
    assert worker.shedder.refusal_of_whole(other, []) is not None


def _without_id(response: Response) -> tuple[dict[str, str], str]:
    request_id = response.headers["x-request-id"]
    headers = {
        name: value
        for name, value in response.headers.items()
        if value != request_id and name != "date"
    }
    return headers, json.dumps(response.json()).replace(request_id, "")


async def test_a_refused_head_request_has_no_body() -> None:
    head_request = get(line=b"HEAD / HTTP/1.1")
    async with occupied(BUSY) as running, running.connected(head_request) as (reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(get())
        following = await reader.readexactly(len(b"HTTP/1.1 503"))

    assert head.startswith(b"HTTP/1.1 503")
    assert following == b"HTTP/1.1 503"


@pytest.mark.parametrize(
    "request_bytes",
    [
        get(line=b"GET /admitted HTTP/1.1"),
        post(b"Content-Length: 5", body=b"", line=b"POST /busy HTTP/1.1"),
    ],
    ids=["admitted", "sending"],
)
async def test_only_requests_that_wait_for_the_worker_count(request_bytes: bytes) -> None:
    async with occupied(request_bytes) as running:
        assert (await exchange(running.address, get())).statuses == (200,)


async def test_requests_whose_callers_left_count_no_more() -> None:
    busy = Busy()
    async with serving(busy) as running:
        async with AsyncExitStack() as stack:
            await occupy(running, busy, BUSY, stack)
        busy.released.set()
        await asyncio.sleep(0)
        assert (await exchange(running.address, get())).statuses == (200,)


async def test_accepted_requests_are_answered_while_others_are_refused() -> None:
    busy = Busy()
    async with serving(busy) as running, AsyncExitStack() as stack:
        reader, writer = await stack.enter_async_context(running.connected(BUSY))
        await occupy(running, busy, BUSY, stack)
        await refused(running, get())
        busy.released.set()
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()

    assert head.startswith(b"HTTP/1.1 200")
