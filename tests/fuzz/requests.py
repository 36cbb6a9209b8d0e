"""The server's protocol: whatever arrives, in whatever pieces, the same requests are answered.

While the server is overloaded, whole requests are refused as those are that it reads.
"""

import asyncio
import atexit
import logging
import re
import socket
from collections.abc import MutableMapping
from functools import cache
from typing import Any, cast

import httptools
import uvicorn
from uvicorn.server import ServerState

from tests.fuzz.pieces import cut
from tollhouse.base.clock import SystemClock
from tollhouse.serving.connections import ClientConnections, ConnectionBounds
from tollhouse.serving.load_shedder import PENDING_MAX, LoadShedder
from tollhouse.serving.protocol import BoundedHttpProtocol
from tollhouse.serving.refusals import OverloadRefusals

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n"
BEGUN = b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nX: "
LINE_THAT_LOOKS_WHOLE = b"GET / HTTP/1.1\r\nHost: b\r\nP: \r\n\r\n"
SEEDS = (
    b"\x10GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n",
    b"\x03" + HEAD + b"Content-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: b\r\n\r\n",
    b"\x00" + CHUNKED + b"\r\n2;x=y\r\nhe\r\n0\r\nA: b\r\n\r\n",
    b"\x08" + HEAD + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    b"\x00HEAD / HTTP/1.1\r\nHost: a\r\n\r\n0\r\nA:\x00",
    b"\x05" + CHUNKED + b"Content-Length: 1\r\n\r\n0\r\n\r\n",
    b"\x40POST /manage/v1 HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na\r\n",
    # A head that begins behind the end of a request goes on in the next piece.
    bytes([len(BEGUN) - 1])
    + BEGUN
    + LINE_THAT_LOOKS_WHOLE.replace(
        b"P: ", b"P: ".ljust(3 + len(BEGUN) - len(LINE_THAT_LOOKS_WHOLE), b"p")
    ),
)
AFTERWARDS = b"GET /afterwards HTTP/1.1\r\nHost: a\r\n\r\n"
DATE = re.compile(rb"date: [^\r]*")
REQUEST_ID = re.compile(rb"[0-9a-f-]{36}")
TURNS_MAX = 40
"""Of the event loop, after which everything that arrived is answered."""

Scope = MutableMapping[str, Any]


@cache
def _unconnected() -> socket.socket:
    """Return the socket of all connections, which has acknowledged nothing."""
    opened = socket.socket()
    atexit.register(opened.close)
    return opened


class _Transport(asyncio.Transport):
    """Keeps what is written. A peer that reads at once."""

    def __init__(self) -> None:
        names = {"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)}
        super().__init__({**names, "socket": _unconnected()})
        self.written = bytearray()
        self.is_closed = False
        self.is_ended = False
        """Whether nothing more is written, though the peer may still send."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.is_closed, "nothing is written to a closed connection"
        self.written += data

    def write_eof(self) -> None:
        self.is_ended = True

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def is_reading(self) -> bool:
        return True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0


class _Statuses:
    """Reads what a client would read."""

    def __init__(self, written: bytes) -> None:
        self.found: list[int] = []
        self.parser = httptools.HttpResponseParser(self)
        self.parser.feed_data(written)

    def on_message_complete(self) -> None:
        self.found.append(self.parser.get_status_code())


class _ReadingShedder(LoadShedder):
    """Refuses requests only while they are read."""

    def refusal_of_whole(self, data: bytes, server_headers: Any) -> None:  # noqa: ANN401, ARG002
        return None


class _Application:
    """Reads each request to its end, answers 200, and keeps what it read."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, bytes, bytes]] = []

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        self.requests.append((scope["method"], scope["raw_path"], body))
        # Without a body, so that the answer to HEAD is read as that to any other method.
        headers = [(b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body"})


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    atexit.register(loop.close)
    return loop


class _Failures(logging.Handler):
    """Keeps what the server logs as an error, such as an exception while it answers."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(self.format(record))


@cache
def _failures() -> _Failures:
    failures = _Failures()
    logging.getLogger("uvicorn.error").addHandler(failures)
    return failures


@cache
def _served() -> tuple[_Application, uvicorn.Config]:
    """Return the application of all exchanges, and its configuration, which takes long to load."""
    application = _Application()
    config = uvicorn.Config(cast("Any", application), interface="asgi3", log_config=None)
    config.load()
    return application, config


def check(data: bytes) -> None:
    """Compare requests and answers of all pieces with those of the whole.

    What cannot be parsed is refused, unless an earlier request is still being answered. An
    overloaded server answers the same, whether or not it reads what it refuses.
    """
    whole, pieces = cut(data)
    (requests, statuses), (other_requests, other_statuses) = _observed(pieces), _observed([whole])
    assert requests == other_requests, "pieces change nothing"
    shared = min(len(statuses), len(other_statuses))
    assert statuses[:shared] == other_statuses[:shared]
    for each in (pieces, [whole]):
        assert _refused(each, LoadShedder) == _refused(each, _ReadingShedder), "refused as if read"


Refusals = tuple[bytes, bool, list[tuple[str, bytes, bytes]]]


def _refused(pieces: list[bytes], kind: type[LoadShedder]) -> Refusals:
    return _loop().run_until_complete(_refusals(pieces, kind))


async def _refusals(pieces: list[bytes], kind: type[LoadShedder]) -> Refusals:
    """Return what an overloaded server answers, and what it reads once it is not any more."""
    application, _ = _served()
    application.requests = []
    transport, shedder = _Transport(), _overloaded(kind)
    protocol = _connected(transport, shedder)
    for piece in pieces:
        protocol.data_received(piece)
    shedder.pending = 0
    protocol.data_received(AFTERWARDS)
    await _take_turns()
    shedder.pending = PENDING_MAX
    is_ended = transport.is_closed or transport.is_ended
    protocol.connection_lost(None)
    await asyncio.sleep(0)
    answers = DATE.sub(b"", REQUEST_ID.sub(b"", transport.written))
    return answers, is_ended, application.requests


async def _take_turns() -> None:
    for _ in range(TURNS_MAX):
        await asyncio.sleep(0)


def _observed(pieces: list[bytes]) -> tuple[list[tuple[str, bytes, bytes]], list[int]]:
    return _loop().run_until_complete(_exchange(pieces))


async def _exchange(pieces: list[bytes]) -> tuple[list[tuple[str, bytes, bytes]], list[int]]:
    """Return the requests that an application saw, and the statuses that a client reads."""
    application, _ = _served()
    application.requests = []
    failures, transport = _failures(), _Transport()
    failures.found.clear()
    protocol = _connected(transport, _new_shedder(LoadShedder))
    for piece in pieces:
        if not transport.is_closed:
            protocol.data_received(piece)
            await asyncio.sleep(0)
    await _take_turns()
    protocol.connection_lost(None)
    await asyncio.sleep(0)
    statuses = _Statuses(bytes(transport.written)).found
    assert not failures.found
    assert statuses.count(200) == len(application.requests)
    assert len(statuses) <= len(application.requests) + 1, "one refusal, and nothing after it"
    return application.requests, statuses


def _new_shedder(kind: type[LoadShedder]) -> LoadShedder:
    return kind(SystemClock(), OverloadRefusals(documentation_url=None))


@cache
def _overloaded(kind: type[LoadShedder]) -> LoadShedder:
    """Return one for all connections: each would log once that it refuses requests."""
    shedder = _new_shedder(kind)
    shedder.pending = PENDING_MAX
    return shedder


def _connected(transport: _Transport, shedder: LoadShedder) -> BoundedHttpProtocol:
    """Return a new connection to a server with this shedder."""
    _, config = _served()
    protocol = BoundedHttpProtocol(
        config,
        ServerState(),
        {},
        asyncio.get_running_loop(),
        bounds=ConnectionBounds(header_bytes_max=2_048, header_seconds=60, write_seconds=60),
        open_connections=ClientConnections(connections_max=100, clock=SystemClock()),
        shedder=shedder,
        documentation_url=None,
    )
    protocol.connection_made(transport)
    return protocol
