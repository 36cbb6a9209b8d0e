"""Callers over bare sockets that read, stop and send exactly as a test says."""

import asyncio
import json
import re
import socket
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Self

from tests.support.raw_streams import CHAT, LAST_CHUNK, MESSAGES, RESPONSES

RECEIVE_BUFFER_BYTES = 4_096
SEGMENT_BYTES = 536
"""With small segments and a small receive buffer, little of an answer fits into the kernel."""
READ_BYTES = 65_536
HEAD_BYTES_MAX = 16_384
READ_SECONDS_MAX = 30.0
LOOK_EVERY_SECONDS = 0.05
ESTABLISHED = "01"

_HEAD_END = b"\r\n\r\n"
_CHAT_TEXT = re.compile(rb'"content":"([^"]*)')
_RESPONSE_DELTA = re.compile(rb'"delta":"([^"]*)')
_MESSAGE_TEXT = re.compile(rb'"text":"([^"]*)')
_PIECES = {CHAT: _CHAT_TEXT, RESPONSES: _RESPONSE_DELTA, MESSAGES: _MESSAGE_TEXT}
_RESPONSE_TEXT = re.compile(rb'"text":"([^"]*)')


def request_bytes(
    path: str, key: str, body: bytes, *, method: str = "POST", headers: Iterable[str] = ()
) -> bytes:
    """Return a whole request; extra headers stand last."""
    return request_head(path, key, len(body), method=method, headers=headers) + body


def request_head(
    path: str, key: str, length: int, *, method: str = "POST", headers: Iterable[str] = ()
) -> bytes:
    """Return the head of a request that promises a body of this length."""
    lines = [
        f"{method} {path} HTTP/1.1",
        "host: gateway",
        f"authorization: Bearer {key}",
        "content-type: application/json",
        f"content-length: {length}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def delivered_tokens(path: str, received: bytes) -> int:
    """Count the tokens in what a caller read: the test upstream makes one of every word.

    The last events of a Responses stream repeat the whole text, which counts once.
    """
    if path == MESSAGES:
        return _words(_MESSAGE_TEXT.findall(received))
    if path == CHAT:
        return _words(_CHAT_TEXT.findall(received))
    texts: list[bytes] = _RESPONSE_TEXT.findall(received)
    whole = max((_words([text]) for text in texts), default=0)
    return max(_words(_RESPONSE_DELTA.findall(received)), whole)


def _words(texts: Sequence[bytes]) -> int:
    return sum(len(text.split()) for text in texts)


class Caller:
    """One connection. It reads only while a test awaits one of the reading methods."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.received = bytearray()
        self.is_ended = False
        self.stopped_at = 0.0
        self.port = 0
        self._socket = socket.socket()
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def connect(
        cls,
        address: tuple[str, int],
        path: str = CHAT,
        *,
        receive_bytes: int = RECEIVE_BUFFER_BYTES,
    ) -> Self:
        """Connect with buffers that hold little."""
        caller = cls(path)
        caller._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT_BYTES)
        caller._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        caller._socket.setblocking(False)  # noqa: FBT003 - the argument has no name
        await caller._loop.sock_connect(caller._socket, address)
        caller.port = int(caller._socket.getsockname()[1])
        caller.stopped_at = monotonic()
        return caller

    async def send(self, data: bytes) -> None:
        """Send all of it; raises OSError if the server has closed."""
        await self._loop.sock_sendall(self._socket, data)

    async def ask(self, key: str, body: dict[str, Any]) -> None:
        """Send a whole request."""
        await self.send(request_bytes(self.path, key, json.dumps(body).encode()))

    async def read(self, size: int = READ_BYTES) -> bool:
        """Read once; return whether anything came. A reset is an end too."""
        try:
            async with asyncio.timeout(READ_SECONDS_MAX):
                data = await self._loop.sock_recv(self._socket, size)
        except ConnectionError:
            data = b""
        self.received += data
        self.is_ended = not data
        self.stopped_at = monotonic()
        return bool(data)

    async def wait_for_answer(self) -> None:
        """Wait until something of the answer has come, and read nothing of it."""
        is_readable = asyncio.Event()
        self._loop.add_reader(self._socket.fileno(), is_readable.set)
        try:
            async with asyncio.timeout(READ_SECONDS_MAX):
                await is_readable.wait()
        finally:
            self._loop.remove_reader(self._socket.fileno())
        self.stopped_at = monotonic()

    async def read_head(self) -> None:
        """Read up to the end of the head, and not much further."""
        while not self.head and await self.read(256):
            pass

    async def read_tokens(self, count: int) -> None:
        """Read until so many tokens of a stream have come, or the answer ended."""
        piece = _PIECES[self.path]
        found, counted_to = 0, 0
        while found < count and not self.is_whole and await self.read(8_192):
            # What is cut by the end of a read is counted with the next one.
            whole_to = self.received.rfind(b"\n\n")
            if whole_to > counted_to:
                found += _words(piece.findall(self.received, counted_to, whole_to))
                counted_to = whole_to

    async def read_bytes(self, count: int) -> None:
        """Read until so many bytes have come."""
        while len(self.received) < count and await self.read(8_192):
            pass

    async def read_to_end(self) -> None:
        """Read until the answer is whole or the connection is over."""
        while not self.is_whole and await self.read():
            pass

    @property
    def status(self) -> int | None:
        """The status of the answer; nothing if no head came."""
        return int(self.received[9:12]) if self.head else None

    @property
    def head(self) -> str:
        """In lower case; empty before it is whole."""
        end = self.received.find(_HEAD_END, 0, HEAD_BYTES_MAX)
        return self.received[: max(end, 0)].decode("latin-1").lower()

    @property
    def is_chunked(self) -> bool:
        return "transfer-encoding: chunked" in self.head

    @property
    def content_length(self) -> int:
        """As the head says; 0 for a stream."""
        found = re.search(r"content-length: (\d+)", self.head)
        return int(found[1]) if found else 0

    @property
    def is_whole(self) -> bool:
        """Whether the answer came to its end."""
        if self.is_chunked:
            return self.received.endswith(LAST_CHUNK)
        head_bytes = self.received.find(_HEAD_END)
        if head_bytes < 0:
            return False
        return len(self.received) - head_bytes - len(_HEAD_END) >= self.content_length

    @property
    def tokens(self) -> int:
        return delivered_tokens(self.path, bytes(self.received))

    def close(self) -> None:
        self._socket.close()

    def reset(self) -> None:
        """Leave so that the server sees a reset."""
        linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._socket.close()


async def cut_seconds(
    port: int, callers: Sequence[Caller], *, at_most: float
) -> dict[int, float | None]:
    """Return how long after its last read each caller lost the server's end of its connection.

    Nothing stands for a connection that is still open `at_most` seconds after the last one stopped.
    The server may close an end that still has bytes to send, which the caller cannot see: so the
    kernel is asked.
    """
    stopped = {caller.port: caller.stopped_at for caller in callers}
    cut: dict[int, float | None] = dict.fromkeys(stopped)
    last = max(stopped.values()) + at_most
    while None in cut.values() and monotonic() < last:
        still_open = open_ports(port)
        now = monotonic()
        for client in [client for client, seconds in cut.items() if seconds is None]:
            if client not in still_open:
                cut[client] = now - stopped[client]
        await asyncio.sleep(LOOK_EVERY_SECONDS)
    return cut


def open_ports(port: int) -> set[int]:
    """Return the callers' ports of connections that the server on this port holds open."""
    found: set[int] = set()
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        local, remote, state = line.split()[1:4]
        if state == ESTABLISHED and int(local.split(":")[1], 16) == port:
            found.add(int(remote.split(":")[1], 16))
    return found


async def read_what_is_left(callers: Sequence[Caller]) -> None:
    """Read whatever the kernels still hold after the cut, and hang up."""

    async def finish(caller: Caller) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(5.0):
                await caller.read_to_end()
        caller.close()

    await asyncio.gather(*map(finish, callers))
