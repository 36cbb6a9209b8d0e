"""An HTTP/1.1 server connection that can break off at any byte."""

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
    """A complete request. Names of headers are in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


class ScriptedConnection(asyncio.Protocol):
    """Serves one request after the other. Calls `leave` when the connection is closed."""

    def __init__(
        self,
        serve: Callable[[Request, "ScriptedConnection"], None],
        leave: Callable[["ScriptedConnection"], None],
    ) -> None:
        self._serve = serve
        self._leave = leave
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[Request] = deque()
        self._is_busy = False
        self._is_kept = True
        self._is_made = False
        self._is_reset = False
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._transport: asyncio.Transport

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport. Events of a stream are sent without delay."""
        self._transport = cast("asyncio.Transport", transport)
        opened: socket.socket = transport.get_extra_info("socket")
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._is_made = True
        if self._is_reset:
            self.reset()

    def data_received(self, data: bytes) -> None:
        """Parse what arrived. Bytes that are not HTTP end the connection."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError:
            raise  # a bug of this class, which the event loop logs
        except httptools.HttpParserError:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End what waits for this connection."""
        del exc
        self._may_write.set()
        self._leave(self)

    def pause_writing(self) -> None:
        """Make `drain` wait: the peer reads slower than we write."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """Let `drain` go on."""
        self._may_write.set()

    # Called by the parser

    def on_message_begin(self) -> None:
        """Start a request."""
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body = bytearray()

    def on_url(self, url: bytes) -> None:
        """Append a piece of the target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header. The last of equal names wins."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        """Append a piece of the body. Too large a body ends the connection."""
        self._body += body
        if len(self._body) > BODY_BYTES_MAX:
            self._transport.abort()

    def on_message_complete(self) -> None:
        """Queue a complete request."""
        self._is_kept = self._parser.should_keep_alive()
        path, _, query = self._url.decode("latin-1").partition("?")
        request = Request(
            method=self._parser.get_method().decode("latin-1"),
            path=path,
            query=query,
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
        """Write the head of an answer. Without a length the body is chunked."""
        framing = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
        lines = [
            f"HTTP/1.1 {status} {REASONS.get(status, '')}",
            *(f"{name}: {value}" for name, value in headers),
            framing,
        ]
        self._transport.write("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def write(self, data: bytes) -> None:
        """Write bytes without framing. Call `drain` after many of them."""
        self._transport.write(data)

    def write_chunk(self, data: bytes) -> None:
        """Write one chunk of a body without a length."""
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def write_half_chunk(self, data: bytes) -> None:
        """Write the size of a chunk and half of its data."""
        self._transport.write(b"%x\r\n%b" % (len(data), data[: len(data) // 2]))

    async def drain(self) -> None:
        """Wait until the peer has read most of what was written."""
        await asyncio.sleep(0)
        await self._may_write.wait()

    def finish(self) -> None:
        """End the answer and serve the next request."""
        self._is_busy = False
        if self._is_kept:
            self._serve_next()
        else:
            self._transport.close()

    def close(self) -> None:
        """Close the connection after what was written, even within an answer."""
        self._transport.close()

    def reset(self) -> None:
        """Reset the connection, or as soon as it is made."""
        self._is_reset = True
        if not self._is_made:
            return
        opened: Any = self._transport.get_extra_info("socket")
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self._transport.abort()
