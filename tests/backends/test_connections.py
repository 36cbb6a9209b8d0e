"""Which connections are used again, and which never."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from tests.backends.test_transport import sent, sockets, until_sockets
from tests.backends.wire import (
    EVENTS_HEAD,
    Connection,
    Upstream,
    cut_answer,
    json_answer,
    raw_answer,
    stalled_answer,
    whole,
)
from tests.support.gateway import TIMEOUT_SECONDS
from tollhouse.backends.connection import (
    BUFFERED_BYTES_MAX,
    SENT_AT_ONCE_BYTES,
    UpstreamConnection,
)
from tollhouse.backends.errors import ConnectionBroken, NotHttp, TookTooLong
from tollhouse.backends.transport import Transport

READ_AT_ONCE_BYTES = 262_144
"""What an event loop reads from a socket before anybody can tell it to pause."""


async def asked(transport: Transport, upstream: Upstream) -> bytes:
    """One call from its beginning to its end."""
    response = await sent(transport, upstream.url)
    try:
        return await response.read(1_000_000)
    finally:
        response.close()


async def test_a_connection_is_used_again_and_again(
    transport: Transport, upstream: Upstream
) -> None:
    for _ in range(5):
        assert await asked(transport, upstream)

    assert upstream.connections == 1


async def test_calls_at_once_have_connections_of_their_own(
    transport: Transport, upstream: Upstream
) -> None:
    for _ in range(3):
        await asyncio.gather(*(asked(transport, upstream) for _ in range(4)))

    assert upstream.connections == 4


@pytest.mark.parametrize("surplus", [b"x", b"\r\n", whole(b"{}"), b"HTTP/1.1 100 Continue\r\n\r\n"])
async def test_no_answer_is_ever_taken_for_another(
    transport: Transport, upstream: Upstream, surplus: bytes
) -> None:
    """Whatever an upstream says before it is asked would answer somebody else's request."""
    upstream.answers(raw_answer(whole(b"first") + surplus), json_answer("second"))

    assert await asked(transport, upstream) == b"first"
    assert await asked(transport, upstream) == b'"second"'
    if surplus != b"\r\n":  # an empty line before a status line is no answer
        assert upstream.connections == 2


async def test_what_arrives_at_an_idle_connection_ends_it(
    transport: Transport, upstream: Upstream
) -> None:
    may_say_more = asyncio.Event()

    async def twice(connection: Connection) -> None:
        await connection.send(whole(b"first"))
        await may_say_more.wait()
        await connection.send(whole(b"nobody's"))
        await connection.gone()

    upstream.answers(twice, json_answer("second"))
    assert await asked(transport, upstream) == b"first"
    may_say_more.set()
    await upstream.no_connection()

    assert await asked(transport, upstream) == b'"second"'


@pytest.mark.parametrize("header", ["connection: close\r\n", "Connection: Keep-Alive, close\r\n"])
async def test_an_upstream_may_ask_to_close(
    transport: Transport, upstream: Upstream, header: str
) -> None:
    upstream.answers(json_answer({}, headers=header))

    await asked(transport, upstream)
    await upstream.no_connection()
    await asked(transport, upstream)

    assert upstream.connections == 2


async def test_an_idle_connection_that_the_upstream_closed_is_not_used(
    transport: Transport, upstream: Upstream
) -> None:
    before = sockets()
    upstream.answers(cut_answer(whole(b"first")), json_answer("second"))

    assert await asked(transport, upstream) == b"first"
    await until_sockets(before)
    assert await asked(transport, upstream) == b'"second"'


async def test_an_idle_connection_does_not_stay(transport: Transport, upstream: Upstream) -> None:
    await asked(transport, upstream)

    await upstream.no_connection()


async def test_a_body_without_a_length_ends_with_its_connection(
    transport: Transport, upstream: Upstream
) -> None:
    upstream.answers(cut_answer(EVENTS_HEAD + b"\r\n", b"some", b"thing"))

    assert await asked(transport, upstream) == b"something"


async def test_what_came_before_a_fault_is_given_before_it(
    transport: Transport, upstream: Upstream
) -> None:
    head = EVENTS_HEAD + b"transfer-encoding: chunked\r\n\r\n"
    upstream.answers(cut_answer(head + b"2\r\nhi\r\n"), raw_answer(head + b"2\r\nhi\r\nnoise\r\n"))

    for failure in (ConnectionBroken, NotHttp):
        response = await sent(transport, upstream.url)
        assert await response.next_bytes() == b"hi"
        with pytest.raises(failure):
            await response.next_bytes()
        response.close()


async def test_whoever_waits_can_be_told_that_it_took_too_long(
    transport: Transport, upstream: Upstream
) -> None:
    upstream.answers(stalled_answer(EVENTS_HEAD + b"\r\n"))
    response = await sent(transport, upstream.url)
    waiting = asyncio.create_task(response.next_bytes())
    await asyncio.sleep(0)

    response.time_out()

    with pytest.raises(TookTooLong):
        await waiting
    response.close()
    response.time_out()
    await upstream.no_connection()


async def test_who_gave_up_at_the_last_moment_leaves_nothing_to_the_next(
    transport: Transport, upstream: Upstream
) -> None:
    response = await sent(transport, upstream.url)
    assert await response.read(1_000_000)

    response.time_out()
    response.close()

    assert await asked(transport, upstream)
    assert upstream.connections == 2


@asynccontextmanager
async def deaf_server(answer: bytes) -> AsyncGenerator[str]:
    """It answers before it has read more than the beginning, and reads nothing after that."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        listener.setblocking(False)  # noqa: FBT003 - the library's own signature

        async def serve() -> None:
            accepted, _ = await loop.sock_accept(listener)
            with accepted:
                await loop.sock_recv(accepted, 1)
                await loop.sock_sendall(accepted, answer)
                await asyncio.Event().wait()

        serving = asyncio.create_task(serve())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def test_an_upstream_may_answer_before_it_has_heard_everything(transport: Transport) -> None:
    async with deaf_server(whole(b"too large", status=413)) as url:
        before = sockets() + 1  # the server's end
        response = await sent(transport, url, b"x" * 30_000_000)

        assert response.status == 413
        assert await response.read(100) == b"too large"
        response.close()
        # A connection with half a request on it is nobody's.
        await until_sockets(before)


async def test_a_slow_reader_slows_the_upstream_down(
    transport: Transport, upstream: Upstream
) -> None:
    body = b"x" * 30_000_000
    has_sent_all = asyncio.Event()

    async def large(connection: Connection) -> None:
        await connection.send(whole(body))
        has_sent_all.set()

    upstream.answers(large)
    response = await sent(transport, upstream.url)
    for _ in range(1_000):
        await asyncio.sleep(0)
    assert not has_sent_all.is_set()

    first = await response.next_bytes()
    assert len(first) <= BUFFERED_BYTES_MAX + READ_AT_ONCE_BYTES
    assert first + await response.read(len(body)) == body
    response.close()


async def test_what_was_given_up_is_never_used_again_however_whole_it_is(
    transport: Transport, upstream: Upstream
) -> None:
    """The end of an answer may arrive at the very moment at which its deadline rings."""
    response = await sent(transport, upstream.url)
    assert await response.read(1_000_000)
    response.time_out()
    response.close()

    assert await asked(transport, upstream)
    assert upstream.connections == 2


async def test_who_gives_up_a_whole_answer_unread_leaves_a_connection_that_is_read(
    transport: Transport, upstream: Upstream
) -> None:
    """Nothing more was taken from the upstream, and it had said all: the next answer is heard."""
    has_sent_all = asyncio.Event()

    async def much(connection: Connection) -> None:
        await connection.send(whole(b"x" * (BUFFERED_BYTES_MAX + 1)))
        has_sent_all.set()

    upstream.answers(much, json_answer("another's"), json_answer("second"))
    response = await sent(transport, upstream.url)
    await has_sent_all.wait()
    # Whoever is answered after it shows that all of it has arrived.
    assert await asked(transport, upstream) == b'"another\'s"'
    response.close()

    async with asyncio.timeout(TIMEOUT_SECONDS):
        assert await asked(transport, upstream) == b'"second"'


class SilentTransport(asyncio.Transport):
    """Accepts everything and sends nothing."""

    def write(self, data: object) -> None:
        del data

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        pass


async def idle() -> UpstreamConnection:
    connection = UpstreamConnection(lambda _: None)
    connection.connection_made(SilentTransport())
    return connection


async def sending() -> UpstreamConnection:
    connection = await idle()
    connection.pause_writing()
    waiting = asyncio.create_task(connection.send(b"", b"x" * (SENT_AT_ONCE_BYTES + 1)))
    await asyncio.sleep(0)
    waiting.cancel()
    return connection


async def receiving() -> UpstreamConnection:
    connection = await idle()
    waiting = asyncio.create_task(connection.send(b"", None))
    await asyncio.sleep(0)
    waiting.cancel()
    return connection


def lose(connection: UpstreamConnection) -> None:
    connection.connection_lost(None)


@pytest.mark.parametrize("reach", [idle, sending, receiving])
@pytest.mark.parametrize(
    ("fail", "failure"),
    [
        (UpstreamConnection.abort, ConnectionBroken),
        (UpstreamConnection.time_out, TookTooLong),
        (lose, ConnectionBroken),
    ],
    ids=["abort", "time_out", "connection_lost"],
)
async def test_a_connection_that_failed_stays_failed(
    reach: Callable[[], Awaitable[UpstreamConnection]],
    fail: Callable[[UpstreamConnection], None],
    failure: type[Exception],
) -> None:
    connection = await reach()
    fail(connection)

    connection.set_idle()
    connection.time_out()

    assert not connection.is_reusable
    with pytest.raises(failure):
        await connection.send(b"", None)


@pytest.mark.parametrize(
    ("reach", "is_reusable"), [(idle, True), (sending, False), (receiving, False)]
)
async def test_only_an_idle_connection_takes_another_request(
    reach: Callable[[], Awaitable[UpstreamConnection]], is_reusable: bool
) -> None:
    assert (await reach()).is_reusable is is_reusable
