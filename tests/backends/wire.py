"""An upstream of raw bytes: what it does to a connection stands in each test."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec

from tests.support.gateway import TIMEOUT_SECONDS

Members = dict[str, object]
FINISHED: Members = {"index": 0, "delta": {}, "finish_reason": "stop"}
USAGE: Members = {"prompt_tokens": 3, "completion_tokens": 2}
COMPLETION: Members = {
    "choices": [{"index": 0, "message": {"content": "Hello."}, "finish_reason": "stop"}],
    "usage": USAGE,
}
DONE = b"data: [DONE]\n\n"
EVENTS_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"


@dataclass(frozen=True)
class Received:
    """A request as it stood on the wire; names of headers in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Connection:
    """The upstream's end, while it answers one request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()

    def cut(self) -> None:
        """Close without another word."""
        self._writer.close()

    def reset(self) -> None:
        """Close so that the other end sees a reset."""
        wire = self._writer.get_extra_info("socket")
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def gone(self) -> None:
        """Wait until the gateway has left."""
        with contextlib.suppress(OSError):
            while await self._reader.read(65_536):
                pass


Answer = Callable[[Connection], Awaitable[None]]


class Upstream:
    """Gives the answers that were put in line, then the last one for ever."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.connections = 0
        self.url = ""
        self._answers: deque[Answer] = deque()
        self._last: Answer = json_answer(COMPLETION)
        self._open: set[asyncio.StreamWriter] = set()
        self._answering = 0
        self._quiet = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self.checked: list[Received] = []
        self._health: Answer = json_answer({})

    @property
    def name(self) -> str:
        """Its name as a replica, which does not contain its address."""
        return f"replica-{id(self)}"

    def answers(self, *answers: Answer) -> None:
        self._answers = deque(answers[:-1])
        self._last = answers[-1]

    def health(self, answer: Answer) -> None:
        """What a health check is told; checks do not stand in line with requests."""
        self._health = answer

    async def checks(self, count: int) -> None:
        """Wait for this many further health checks; all but the last were then answered."""
        enough = len(self.checked) + count
        async with asyncio.timeout(TIMEOUT_SECONDS), self._quiet:
            await self._quiet.wait_for(lambda: len(self.checked) >= enough)

    async def start(self, context: ssl.SSLContext | None = None) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.url = f"{'https' if context else 'http'}://{host}:{port}/v1"

    async def stop(self) -> None:
        """Refuse connections from now on, and reset those that are open."""
        assert self._server is not None
        self._server.close()
        for writer in list(self._open):
            writer.transport.abort()
        await self._server.wait_closed()
        await self.no_connection()

    async def no_answer_under_way(self) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS), self._quiet:
            await self._quiet.wait_for(lambda: not self._answering)

    async def no_connection(self) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS), self._quiet:
            await self._quiet.wait_for(lambda: not self._open)

    async def requests(self, count: int) -> None:
        """Wait until this many requests have arrived whole."""
        async with asyncio.timeout(TIMEOUT_SECONDS), self._quiet:
            await self._quiet.wait_for(lambda: len(self.received) >= count)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while not writer.is_closing():
                await self._answer(await _request(reader), Connection(reader, writer))
        writer.transport.abort()
        self._open.discard(writer)
        await self._tell()

    async def _answer(self, request: Received, connection: Connection) -> None:
        self._answering += 1
        if request.method == "GET":
            self.checked.append(request)
            answer = self._health
        else:
            self.received.append(request)
            answer = self._answers.popleft() if self._answers else self._last
        await self._tell()
        try:
            await answer(connection)
        finally:
            self._answering -= 1
            await self._tell()

    async def _tell(self) -> None:
        async with self._quiet:
            self._quiet.notify_all()


@asynccontextmanager
async def running_upstream(context: ssl.SSLContext | None = None) -> AsyncGenerator[Upstream]:
    upstream = Upstream()
    await upstream.start(context)
    try:
        yield upstream
    finally:
        await upstream.stop()


def raw_answer(*pieces: bytes) -> Answer:
    """These bytes, and the connection stays open."""

    async def answer(connection: Connection) -> None:
        await connection.send(*pieces)

    return answer


def cut_answer(*pieces: bytes) -> Answer:
    """These bytes, then the end of the connection."""

    async def answer(connection: Connection) -> None:
        await connection.send(*pieces)
        connection.cut()

    return answer


def reset_answer(*pieces: bytes) -> Answer:
    async def answer(connection: Connection) -> None:
        await connection.send(*pieces)
        connection.reset()

    return answer


def stalled_answer(*pieces: bytes) -> Answer:
    """These bytes, then nothing until the gateway leaves."""

    async def answer(connection: Connection) -> None:
        await connection.send(*pieces)
        await connection.gone()

    return answer


def json_answer(body: object, *, status: int = 200, headers: str = "") -> Answer:
    return raw_answer(whole(msgspec.json.encode(body), status=status, headers=headers))


def whole(
    body: bytes, *, status: int = 200, kind: str = "application/json", headers: str = ""
) -> bytes:
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n"
    return f"{head}{headers}\r\n".encode() + body


def record(*choices: object, **members: object) -> bytes:
    """One record of a stream."""
    return b"data: " + msgspec.json.encode({"choices": choices, **members}) + b"\n\n"


def said(text: str, *, index: int = 0) -> bytes:
    return record({"index": index, "delta": {"content": text}})


STREAM = said("Hel") + said("lo.") + record(FINISHED) + record(usage=USAGE) + DONE


def chunked(*pieces: bytes, is_ended: bool = True) -> bytes:
    """An answer of events, each piece in an HTTP chunk of its own."""
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    end = b"0\r\n\r\n" if is_ended else b""
    return EVENTS_HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunks + end


async def _request(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, target, headers, body)
