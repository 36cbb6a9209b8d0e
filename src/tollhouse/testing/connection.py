"""HTTP without manners: a connection that can also break off in the middle of anything."""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, cast

import httptools

BODY_BYTES_MAX: Final = 64 * 1024 * 1024
NO_LINGER: Final = struct.pack("ii", 1, 0)
REASONS: Final = {status.value: status.phrase for status in HTTPStatus}
LAST_CHUNK: Final = b"0\r\n\r\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A whole request; names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Connection(asyncio.Protocol):
    """Serves one request after the other; `leave` is called when the peer is gone."""

    def __init__(
        self, serve: Callable[[Request, "Connection"], None], leave: Callable[["Connection"], None]
    ) -> None:
        self._serve = serve
        self._leave = leave
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[Request] = deque()
        self._is_busy = False
        self._is_kept = True
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._transport: asyncio.Transport

    # From the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Events of a stream must not wait for each other."""
        self._transport = cast("asyncio.Transport", transport)
        opened: socket.socket = transport.get_extra_info("socket")
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        """What is no HTTP, or too much of it, ends the connection."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """The peer has left, or we have cut it off."""
        del exc
        self._may_write.set()
        self._leave(self)

    def pause_writing(self) -> None:
        """The peer reads slower than we write."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """The peer has caught up."""
        self._may_write.set()

    # From the parser

    def on_message_begin(self) -> None:
        """A request begins."""
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body = bytearray()

    def on_url(self, url: bytes) -> None:
        """It may come in pieces."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """The last of equal names holds."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        """It comes in pieces, up to a bound."""
        self._body += body
        if len(self._body) > BODY_BYTES_MAX:
            self._transport.abort()

    def on_message_complete(self) -> None:
        """A request is whole."""
        self._is_kept = self._parser.should_keep_alive()
        request = Request(
            method=self._parser.get_method().decode("latin-1"),
            path=self._url.decode("latin-1").partition("?")[0],
            headers=self._headers,
            body=bytes(self._body),
        )
        self._waiting.append(request)
        self._serve_next()

    def _serve_next(self) -> None:
        if self._waiting and not self._is_busy:
            self._is_busy = True
            self._serve(self._waiting.popleft(), self)

    # Answering

    def head(self, status: int, headers: Sequence[tuple[str, str]], length: int | None) -> None:
        """Without a length the body comes in chunks."""
        framing = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
        lines = [
            f"HTTP/1.1 {status} {REASONS.get(status, '')}",
            *(f"{name}: {value}" for name, value in headers),
            framing,
        ]
        self._transport.write("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def write(self, data: bytes) -> None:
        """As it stands; whoever writes much has to drain."""
        self._transport.write(data)

    def write_chunk(self, data: bytes) -> None:
        """One chunk of a body that has no length."""
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def write_half_chunk(self, data: bytes) -> None:
        """Promise the whole and send half of it."""
        self._transport.write(b"%x\r\n%b" % (len(data), data[: len(data) // 2]))

    async def drain(self) -> None:
        """Let others have a turn, and the peer catch up."""
        await asyncio.sleep(0)
        await self._may_write.wait()

    def finish(self) -> None:
        """The answer is complete; the next request may come."""
        self._is_busy = False
        if self._is_kept:
            self._serve_next()
        else:
            self._transport.close()

    def close(self) -> None:
        """End in good order, in the middle of whatever it is."""
        self._transport.close()

    def reset(self) -> None:
        """Break off so that the peer sees a reset instead of an end."""
        opened: Any = self._transport.get_extra_info("socket")
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self._transport.abort()
