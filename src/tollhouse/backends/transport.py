"""Connections to upstreams: the one module that knows the HTTP client.

What follows from a URL, and only that, is asked: no redirect is followed, no proxy variable, cookie
or compression is taken up. Another client can replace this one without touching a caller.
"""

from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    TCPConnector,
)
from aiohttp.http_exceptions import HttpProcessingError

IDLE_SECONDS = 4.0
"""Shorter than the 5 s after which uvicorn and llama.cpp close: a connection must not be reused
while its other end is closing it."""
SENT_AT_ONCE_BYTES = 1_048_576
"""A larger body is written in pieces, so that other requests come in between."""
_CLIENT_FAILURES = (ClientError, HttpProcessingError, OSError)
_AUTOMATIC_HEADERS = ("accept", "accept-encoding", "content-type", "user-agent")


class TransportError(Exception):
    """What can happen on the way; says nothing of where, since callers may be told."""


class NotConnected(TransportError):
    """No connection came about: not a byte of the request was sent."""


class ConnectionBroken(TransportError):
    """The connection ended before the answer did."""


class NotHttp(TransportError):
    """What came back cannot be read as HTTP."""


class BodyTooLarge(TransportError):
    """The answer is larger than the caller would take."""


class Response:
    """An answer whose head has arrived. Whoever got it must close it."""

    __slots__ = ("_response", "status")

    def __init__(self, response: ClientResponse) -> None:
        self._response = response
        self.status = response.status

    def header(self, name: str) -> str | None:
        """The first value of a header, whatever the case of its name."""
        return self._response.headers.get(name)

    async def next_bytes(self) -> bytes:
        """What has arrived, waiting for some; empty at the end of the body."""
        try:
            return await self._response.content.readany()
        except _CLIENT_FAILURES as failure:
            raise _translated(failure) from None

    async def read(self, bytes_max: int) -> bytes:
        """The whole body, or `BodyTooLarge` as soon as it is longer than that."""
        pieces: list[bytes] = []
        size_bytes = 0
        while piece := await self.next_bytes():
            size_bytes += len(piece)
            if size_bytes > bytes_max:
                raise BodyTooLarge
            pieces.append(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Give the connection back if the body was read to its end, else cut it at once."""
        self._response.close()


class Transport:
    """The connections of one worker to all upstreams. Made inside a running event loop."""

    def __init__(self) -> None:
        # Connections are bounded where they are asked for, by backend.
        connector = TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS)
        self._session = ClientSession(
            connector=connector,
            cookie_jar=DummyCookieJar(),
            response_class=_Cut,
            skip_auto_headers=_AUTOMATIC_HEADERS,
            auto_decompress=False,
            trust_env=False,
        )

    async def open(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        connect_seconds: float,
    ) -> Response:
        """Send a request and wait for the head of its answer."""
        try:
            response = await self._session.request(
                method,
                url,
                headers=headers,
                data=_payload(body),
                allow_redirects=False,
                timeout=_timeout(connect_seconds),
            )
        except _CLIENT_FAILURES as failure:
            raise _translated(failure) from None
        return Response(response)

    async def close(self) -> None:
        """Close every connection, those of unfinished answers too."""
        await self._session.close()


class _Cut(ClientResponse):
    """Closing does not wait until an upstream has read the rest of the request."""

    def close(self) -> None:
        connection = self.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        super().close()


def _translated(failure: Exception) -> TransportError:
    """The client's failures carry headers and addresses, so that none of them is passed on."""
    match failure:
        case ClientConnectorError() | ConnectionTimeoutError():
            return NotConnected()
        case ClientResponseError() | HttpProcessingError():
            return NotHttp()
        case _:
            return ConnectionBroken()


def _payload(body: bytes | None) -> bytes | BytesIO | None:
    return body if body is None or len(body) <= SENT_AT_ONCE_BYTES else BytesIO(body)


@lru_cache
def _timeout(connect_seconds: float) -> ClientTimeout:
    """Only connecting is timed here: how long an answer may take depends on what it is."""
    return ClientTimeout(total=None, connect=connect_seconds)
