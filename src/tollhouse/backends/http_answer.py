"""Bytes of a connection into answers, one after another. Reads and waits for nothing itself.

The parser is llhttp in its strict form: lines end with CR LF, a length is stated once and never
beside chunks, and no line is continued. What it leaves open is bounded here: the bytes of a head
with all informational answers before it, chunk extensions and trailers. A body whose length is
stated by nothing ends with the connection.
"""

from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from tollhouse.backends.transport_errors import ConnectionBroken, NotHttp

HEAD_BYTES_MAX: Final = 65_536
"""Also of what may stand between two pieces of a body."""
_VERSIONS: Final = frozenset({"1.0", "1.1"})
_FINAL_FROM: Final = 200


class AnswerParser:
    """One per connection. `status` is 0 until the head of the answer is there."""

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
        """Another request was sent."""
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.buffered_bytes = 0
        self.is_whole = False
        self.keeps_alive = False
        self._pieces: list[bytes] = []
        self._framing_bytes = 0
        self._ends_with_connection = False

    def feed(self, data: bytes) -> None:
        """Take what has arrived; raises NotHttp. What comes after an answer only spoils reuse."""
        if self.status:
            self._feed(data)
            return
        room_bytes = HEAD_BYTES_MAX - self._framing_bytes
        self._feed(data[:room_bytes])
        if len(data) > room_bytes:
            if not self.status:
                raise NotHttp
            self._feed(data[room_bytes:])

    def end(self) -> None:
        """The other side has said all that it will say; raises ConnectionBroken if too early."""
        if self._ends_with_connection:
            self.is_whole = True
        if not self.is_whole:
            raise ConnectionBroken

    def take(self) -> bytes:
        """All of the body that has arrived since the last time; may be nothing."""
        pieces = self._pieces
        taken = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self.buffered_bytes = 0
        return taken

    def _feed(self, data: bytes) -> None:
        self._framing_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self.keeps_alive = False
            if not self.is_whole:
                raise NotHttp from None
        if self._framing_bytes > HEAD_BYTES_MAX and not self.is_whole:
            raise NotHttp

    # What the parser calls; whatever is raised here comes out of it as a HttpParserError

    def on_message_begin(self) -> None:
        """A second answer to one request is nobody's."""
        if self.is_whole:
            raise NotHttp

    def on_header(self, name: bytes, value: bytes) -> None:
        """The first of several counts; trailers do not."""
        if not self.status:
            self.headers.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        """Informational answers go unheard."""
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
        """Kept until somebody takes it."""
        self._framing_bytes = 0
        self.buffered_bytes += len(body)
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        """Also called for informational answers, which have no status here."""
        if self.status:
            self.is_whole = True
            self.keeps_alive = self._parser.should_keep_alive()
