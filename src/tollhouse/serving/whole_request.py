"""Recognizes one whole request in bytes, without making a request of it (decision 0037)."""

from typing import Final

import httptools

_VERSION: Final = "1.1"
_TRANSFER_ENCODING: Final = b"transfer-encoding"


class WholeRequestParser:
    """Parses bytes that begin where a request begins.

    It accepts only requests whose end every server finds at the same byte, and which leave the
    connection open. One serves all connections: it keeps nothing of bytes that it has parsed.
    """

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._forget()

    def parse(self, data: bytes) -> tuple[bytes, bytes] | None:
        """Return the method and the target if `data` is one such request, otherwise None."""
        self._forget()
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._is_plain = False
        if self._begun != self._ended or not self._is_plain:
            self._parser = httptools.HttpRequestParser(self)
            return None
        return (self._method, self._target) if self._ended == 1 else None

    def _forget(self) -> None:
        self._begun = self._ended = 0
        self._method = self._target = b""
        self._is_plain = True

    # Called by the parser

    def on_message_begin(self) -> None:
        """Count the begin of a request."""
        self._begun += 1

    def on_url(self, part: bytes) -> None:
        """Keep the target."""
        self._target += part

    def on_header(self, name: bytes, _value: bytes) -> None:
        """Note a transfer coding: servers may differ about where such a body ends."""
        if name.lower() == _TRANSFER_ENCODING:
            self._is_plain = False

    def on_message_complete(self) -> None:
        """Count the end of a request, and keep what is known of it until the next begins."""
        self._ended += 1
        self._method = self._parser.get_method()
        if self._parser.get_http_version() != _VERSION or not self._parser.should_keep_alive():
            self._is_plain = False
