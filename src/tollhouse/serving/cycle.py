"""One request and its answer on a connection: the rules of its head, and sending the answer."""

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from tollhouse.api.body import TAKE_ARRIVED_BODY
from tollhouse.api.head import is_chunked
from tollhouse.serving.load_shedder import LoadShedder

_CONTROL: Final = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
LAST_CHUNK: Final = b"0\r\n\r\n"
COPIED_BYTES_MAX: Final = 16_384
_WITHOUT_BODY: Final = frozenset({204, 304})
_VERSIONS: Final = ("1.1", "1.0")

Header = tuple[bytes, bytes]


class InvalidAsgiMessage(RuntimeError):
    """The application sent a message that is not part of a valid answer."""


class Cycle(RequestResponseCycle):
    """One request and its answer. Names of headers are in lower case, as ASGI requires.

    The parent checks and writes each header by itself, which takes longer than the whole answer.
    This class checks and writes a head as one text.
    """

    on_early_answer: Callable[[], None] | None = None
    """Called when an answer is written completely while the application still reads the request."""
    _unwritten_head: bytes = b""
    """The head of an answer of known length, which is written together with its body."""

    pending_in: LoadShedder | None = None
    """Where the request is counted as pending."""

    def start_pending(self, shedder: LoadShedder) -> None:
        """Count the request as pending until it is admitted or answered."""
        self.pending_in = shedder
        shedder.pending += 1

    def end_pending(self) -> None:
        """Stop counting the request as pending."""
        if self.pending_in is not None:
            self.pending_in.pending -= 1
            self.pending_in = None

    async def run_asgi(self, app: Any) -> None:  # noqa: ANN401 - an ASGI application
        """Run the application."""
        try:
            await super().run_asgi(app)
        finally:
            self.end_pending()
            # The scope would refer to this object, which refers to the scope.
            self.scope.get("extensions", {}).pop(TAKE_ARRIVED_BODY, None)

    async def send(self, message: Any) -> None:  # noqa: ANN401 - one of ASGI's
        """Write the head or a piece of the body, then wait until the peer has read most of it.

        Returns at once if the peer has left. If the peer does not read, the write deadline of the
        connection ends the wait.
        """
        if self.disconnected:
            return
        if self.response_complete:
            reason = "the answer is complete"
            raise InvalidAsgiMessage(reason)
        if message["type"] == "http.response.body" and self.response_started:
            self._send_body(message.get("body", b""), is_last=not message.get("more_body", False))
        elif message["type"] == "http.response.start" and not self.response_started:
            self._send_head(message["status"], message["headers"])
        else:
            reason = f"{message['type']} is out of order"
            raise InvalidAsgiMessage(reason)
        if self.flow.write_paused:
            await self.flow.drain()

    def _send_head(self, status: int, headers: Sequence[Header]) -> None:
        self.response_started = True
        self.end_pending()
        self.waiting_for_100_continue = False
        lines = [*self.default_headers, *headers]
        fields = dict(lines)
        assert b"transfer-encoding" not in fields, "the server frames a body without a length"
        if fields.get(b"connection") == b"close":
            self.keep_alive = False
        elif not self.keep_alive:
            lines.append((b"connection", b"close"))
        length = fields.get(b"content-length")
        has_body = self.scope["method"] != "HEAD" and status not in _WITHOUT_BODY
        self.expected_content_length = int(length) if length is not None and has_body else 0
        self.chunked_encoding = has_body and length is None
        if self.chunked_encoding:
            lines.append((b"transfer-encoding", b"chunked"))
        head = STATUS_LINE[status] + _head(lines)
        if self.expected_content_length:
            self._unwritten_head = head
        else:
            self.transport.write(head)

    def _send_body(self, body: bytes, *, is_last: bool) -> None:
        if self.chunked_encoding:
            self._send_chunk(body, end=b"0\r\n\r\n" if is_last else b"")
        elif self.scope["method"] != "HEAD":
            left_bytes = self.expected_content_length - len(body)
            if left_bytes < 0 or (is_last and left_bytes > 0):
                reason = "the body is longer or shorter than its content-length"
                raise InvalidAsgiMessage(reason)
            self.expected_content_length = left_bytes
            self._write_with_head(body)
        if is_last:
            self._complete()
            return
        is_written = not self.chunked_encoding and self.expected_content_length == 0
        if is_written and self.more_body and self.on_early_answer is not None:
            self.on_early_answer()

    def _write_with_head(self, body: bytes) -> None:
        head, self._unwritten_head = self._unwritten_head, b""
        if len(body) <= COPIED_BYTES_MAX:
            self.transport.write(head + body)
            return
        self.transport.write(head)
        self.transport.write(body)

    def _send_chunk(self, body: bytes, *, end: bytes) -> None:
        """Write one chunk. A large one is not copied, which would take its memory twice."""
        if len(body) <= COPIED_BYTES_MAX:
            self.transport.write(b"%x\r\n%b\r\n%b" % (len(body), body, end) if body else end)
            return
        self.transport.write(b"%x\r\n" % len(body))
        self.transport.write(body)
        self.transport.write(b"\r\n" + end)

    def take_arrived_body(self) -> bytes | None:
        """Return what is left of the body if all of it has arrived, or None."""
        if self.more_body or self.disconnected:
            return None
        body, self.body = bytes(self.body), bytearray()
        self.message_event.clear()
        self.flow.resume_reading()
        return body

    def _complete(self) -> None:
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


def _shed() -> Cycle:
    cycle = Cycle.__new__(Cycle)
    cycle.response_complete = True
    cycle.message_event = asyncio.Event()
    return cycle


SHED: Final = _shed()
"""Stands for every request that is shed: it is answered, and what else comes of it is dropped."""


def _head(lines: Sequence[Header]) -> bytes:
    """Return the headers as bytes. Raises if a name or value would begin another line."""
    text = b"".join(map(b"%b: %b\n".__mod__, lines))
    if text.count(b"\n") != len(lines) or _CONTROL.search(text) is not None:
        reason = "a header contains a control character"
        raise InvalidAsgiMessage(reason)
    return text.replace(b"\n", b"\r\n") + b"\r\n"


class UnparsedChunks:
    """The end of a body in chunks that is not parsed any more.

    An error about it only closes the connection too early or too late.
    """

    def __init__(self) -> None:
        self._last = b""

    def ends_with(self, data: bytes) -> bool:
        """Return whether the body looks complete after `data`."""
        self._last = (self._last + data[-len(LAST_CHUNK) :])[-len(LAST_CHUNK) :]
        return self._last == LAST_CHUNK


class CycleTransport:
    """The part of a transport that a cycle uses, with another way to close."""

    __slots__ = ("close", "is_closing", "write")

    def __init__(self, transport: asyncio.Transport, *, close: Callable[[], None]) -> None:
        self.write = transport.write
        self.is_closing = transport.is_closing
        self.close = close


def end_body(cycle: RequestResponseCycle) -> None:
    """Tell the application that the body is complete."""
    cycle.more_body = False
    cycle.message_event.set()


def disconnect(cycle: RequestResponseCycle) -> None:
    """Tell the application that its peer is gone."""
    cycle.disconnected = True
    cycle.message_event.set()


def is_body_chunked(headers: Sequence[Header], version: str) -> bool | None:
    """Return whether a body is chunked, or None if servers could disagree about where it ends.

    The parser accepts any list of codings that ends in `chunked`, and decodes only that one.
    Chunks in HTTP/1.0 are faulty framing (RFC 9112, section 6.1).
    """
    codings: list[bytes] = []
    for name, value in headers:
        if name == b"transfer-encoding":
            codings.append(value)
    if not codings:
        return False if version in _VERSIONS else None
    return True if version == "1.1" and is_chunked(codings) else None


def complete_scope(
    scope: Any,  # noqa: ANN401 - the server's type allows no unknown keys
    parser: httptools.HttpRequestParser,
    target: bytes,
    version: str,
) -> None:
    """Add the method, the version and the parts of the target to an ASGI scope."""
    url = httptools.parse_url(target)
    path = url.path.decode("ascii")
    scope["method"] = parser.get_method().decode("ascii")
    scope["http_version"] = version
    scope["path"] = unquote(path) if "%" in path else path
    scope["raw_path"] = url.path
    scope["query_string"] = url.query or b""


def head_without_upgrade(
    method: bytes, target: bytes, version: str, headers: Sequence[Header]
) -> bytes:
    """Return a request's head as bytes, without its `Upgrade` header.

    Java's client offers an upgrade on every plain connection.
    """
    lines = [b"%b %b HTTP/%b\r\n" % (method, target, version.encode())]
    lines += [b"%b: %b\r\n" % header for header in headers if header[0] != b"upgrade"]
    return b"".join((*lines, b"\r\n"))
