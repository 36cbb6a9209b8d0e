"""HTTP/1.1 as bytes: heads of requests to upstreams, and the parser of their answers. No I/O."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct

from tollhouse.backends.errors import ConnectionBroken, NotHttp

Method = Literal["GET", "POST"]
Headers = tuple[tuple[str, str], ...]

HEADS_CACHED_MAX: Final = 1_024
HEAD_BYTES_MAX: Final = 65_536
"""Bounds the head of an answer, and the framing between two pieces of its body."""
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_HOST: Final = re.compile(r"[A-Za-z0-9._:-]+", re.ASCII)
_TARGET: Final = re.compile(r"/[!-~]*", re.ASCII)
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_VALUE: Final = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?", re.ASCII)
_FRAMING: Final = frozenset({"connection", "content-length", "host", "transfer-encoding"})
_VERSIONS: Final = frozenset({"1.0", "1.1"})
_FINAL_FROM: Final = 200


class NotSendable(ValueError):
    """A part of a request is not allowed on the wire. Carries no text: the part may be a secret."""


class Origin(Struct, frozen=True):
    """The server that a connection leads to."""

    is_tls: bool
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The head of a request without the length of its body."""

    origin: Origin
    lines: bytes = field(repr=False)

    def with_body(self, body: bytes | None) -> bytes:
        """Return the complete head of a request with this body."""
        if body is None:
            return self.lines + b"\r\n"
        return b"%bcontent-length: %d\r\n\r\n" % (self.lines, len(body))

    def with_traceparent(self, traceparent: str) -> "RequestHead":
        """Return the head with the span that the request belongs to. It is not cached."""
        line = f"traceparent: {traceparent}\r\n".encode("ascii")
        return RequestHead(self.origin, self.lines + line)


def uncached_request_head(method: Method, url: str, headers: Headers) -> RequestHead:
    """Return the head of a request to `url`.

    Raises `NotSendable` if a part could end its line early. All parts are configuration, but a
    credential may come from a file, and files have line ends.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _DEFAULT_PORTS.get(parts.scheme)
    if port is None or parts.username is not None or parts.fragment:
        raise NotSendable
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    _check(_HOST, host)
    _check(_TARGET, target)
    is_usual_port = port == _DEFAULT_PORTS[parts.scheme]
    named_host = f"[{host}]" if ":" in host else host
    lines = [
        f"{method} {target} HTTP/1.1",
        f"host: {named_host}" if is_usual_port else f"host: {named_host}:{port}",
        *map(_line, headers),
    ]
    origin = Origin(is_tls=parts.scheme == "https", host=host, port=port)
    return RequestHead(origin, "".join(f"{line}\r\n" for line in lines).encode("ascii"))


request_head: Final = lru_cache(maxsize=HEADS_CACHED_MAX)(uncached_request_head)


def _line(header: tuple[str, str]) -> str:
    name, value = header
    _check(_NAME, name)
    _check(_VALUE, value)
    if name.lower() in _FRAMING:
        raise NotSendable
    return f"{name}: {value}"


def _check(form: re.Pattern[str], text: str) -> None:
    if form.fullmatch(text) is None:
        raise NotSendable


class AnswerParser:
    """Parses the answers of one connection. `status` is 0 until the head of an answer is complete.

    llhttp parses strictly: lines end with CR LF, a length is stated once and never beside chunks,
    and no line is continued. This class bounds what llhttp does not: the bytes of a head with all
    informational answers before it, chunk extensions and trailers. A body without a stated length
    ends with the connection.
    """

    __slots__ = (
        "_ends_with_connection",
        "_framing_bytes",
        "_parser",
        "_pieces",
        "buffered_bytes",
        "headers",
        "is_whole",
        "keeps_alive",
        "status",
    )

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        self.begin()

    def begin(self) -> None:
        """Expect the answer to another request."""
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.buffered_bytes = 0
        self.is_whole = False
        self.keeps_alive = False
        self._pieces: list[bytes] = []
        self._framing_bytes = 0
        self._ends_with_connection = False

    def feed(self, data: bytes) -> None:
        """Parse what has arrived. Raises `NotHttp`.

        Bytes after a whole answer raise nothing; they only clear `keeps_alive`.
        """
        if not self.status and self._framing_bytes + len(data) > HEAD_BYTES_MAX:
            head_bytes_left = HEAD_BYTES_MAX - self._framing_bytes
            self.feed(data[:head_bytes_left])
            if not self.status:
                raise NotHttp
            data = data[head_bytes_left:]
        self._framing_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self.keeps_alive = False
            if not self.is_whole:
                raise NotHttp from None
        if self._framing_bytes > HEAD_BYTES_MAX and not self.is_whole:
            raise NotHttp

    def end(self) -> None:
        """Record the end of the connection. Raises `ConnectionBroken` if it came too early."""
        if self._ends_with_connection:
            self.is_whole = True
        if not self.is_whole:
            raise ConnectionBroken

    def take(self) -> bytes:
        """Return and remove the buffered part of the body, which may be empty."""
        pieces = self._pieces
        taken = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self.buffered_bytes = 0
        return taken

    # Called by llhttp, which turns every exception into an HttpParserError

    def on_message_begin(self) -> None:
        """Refuse a second answer to one request."""
        if self.is_whole:
            raise NotHttp

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep the first header of each name. Trailers are dropped."""
        if not self.status:
            self.headers.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        """Check the framing and set `status`. Informational answers are skipped."""
        status = self._parser.get_status_code()
        if status < _FINAL_FROM:
            self.headers = {}
            return
        version = self._parser.get_http_version()
        coding = self.headers.get(b"transfer-encoding")
        if version not in _VERSIONS or (
            coding is not None and (coding.lower() != b"chunked" or version == "1.0")
        ):
            raise NotHttp
        self._ends_with_connection = coding is None and b"content-length" not in self.headers
        self.status = status

    def on_body(self, body: bytes) -> None:
        """Buffer a piece of the body until `take`."""
        self._framing_bytes = 0
        self.buffered_bytes += len(body)
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        """Mark the answer as whole. Informational answers, which leave `status` at 0, are not."""
        if self.status:
            self.is_whole = True
            self.keeps_alive = self._parser.should_keep_alive()
