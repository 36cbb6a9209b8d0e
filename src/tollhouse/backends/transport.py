"""The HTTP client for upstreams: HTTP/1.1 on connections that are reused for a few seconds.

It follows no redirect and uses no proxy variable, cookie or compression.
"""

import asyncio
import ssl
from collections.abc import Coroutine, Mapping
from functools import cache
from typing import Any, Final

from tollhouse.backends.connection import IdleConnections, UpstreamConnection
from tollhouse.backends.errors import NotConnected, NotTrusted, UpstreamBodyTooLarge
from tollhouse.backends.http1 import Method, Origin, RequestHead, request_head

CONNECTING_FAILURES: Final = (OSError, UnicodeError)
"""A host name that is not valid raises `UnicodeError`."""


class Response:
    """An answer whose head has arrived. Its owner must close it. Header names are lower case."""

    __slots__ = ("_connection", "_idle", "_is_closed", "_origin", "headers", "status")

    def __init__(
        self,
        idle: IdleConnections,
        origin: Origin,
        connection: UpstreamConnection,
        *,
        status: int,
        headers: Mapping[bytes, bytes],
    ) -> None:
        self._idle = idle
        self._origin = origin
        self._connection = connection
        self._is_closed = False
        self.status = status
        self.headers = headers

    def next_bytes(self) -> Coroutine[Any, Any, bytes]:
        """Return what has arrived, waiting for at least one byte; empty at the end of the body."""
        assert not self._is_closed, "the connection may already serve another request"
        return self._connection.next_bytes()

    async def read(self, bytes_max: int) -> bytes:
        """Return the whole body. Raises `UpstreamBodyTooLarge` once it exceeds `bytes_max`."""
        pieces: list[bytes] = []
        size_bytes = 0
        connection = self._connection
        while piece := await connection.next_bytes():
            size_bytes += len(piece)
            if size_bytes > bytes_max:
                raise UpstreamBodyTooLarge
            if connection.answer.is_whole and not pieces:
                return piece
            pieces.append(piece)
        return b"".join(pieces)

    def time_out(self) -> None:
        """Raise `TookTooLong` in the task that waits for more."""
        if not self._is_closed:
            self._connection.time_out()

    def close(self) -> None:
        """Keep the connection for reuse if the body has ended, else abort it."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._connection.is_reusable:
            self._idle.add(self._origin, self._connection)
        else:
            self._connection.abort()


class Transport:
    """The connections of one worker to upstreams. Created inside a running event loop.

    All of them trust `ca_certificates`, or the system's authorities: a connection that was checked
    against others is never reused here. `Replicas` bounds the number for each backend.
    """

    def __init__(self, ca_certificates: str | None = None) -> None:
        self._ca_certificates = ca_certificates
        self._open: set[UpstreamConnection] = set()
        self._idle = IdleConnections()

    async def send(
        self,
        method: Method,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        connect_seconds: float,
    ) -> Response:
        """Send a request and wait for the head of its answer. Only connecting has a timeout."""
        head = request_head(method, url, tuple(headers.items()))
        connection = self.pop_idle(head.origin) or await self.connect(head.origin, connect_seconds)
        return await self.send_on(connection, head, body)

    def pop_idle(self, origin: Origin) -> UpstreamConnection | None:
        """Return an open connection that has no request, or None."""
        return self._idle.pop(origin)

    async def send_on(
        self, connection: UpstreamConnection, head: RequestHead, body: bytes | None
    ) -> Response:
        """Send a request on a connection to its origin, and wait for the head of its answer."""
        try:
            status, received = await connection.send(head.with_body(body), body)
        except BaseException:
            connection.abort()
            raise
        return Response(self._idle, head.origin, connection, status=status, headers=received)

    async def close(self) -> None:
        """Close every connection, also those of unfinished answers."""
        self._idle.clear()
        for connection in tuple(self._open):
            connection.abort()

    async def connect(self, origin: Origin, connect_seconds: float) -> UpstreamConnection:
        """Open a connection. Raises `NotConnected`, and `NotTrusted` for a refused certificate."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(connect_seconds):
                _, connection = await loop.create_connection(
                    lambda: UpstreamConnection(self._open.discard),
                    origin.host,
                    origin.port,
                    ssl=_tls(self._ca_certificates) if origin.is_tls else None,
                )
        except ssl.SSLCertVerificationError as error:
            raise NotTrusted(error.verify_message.rstrip(".")) from None
        except CONNECTING_FAILURES:
            raise NotConnected from None
        self._open.add(connection)
        return connection


@cache
def _tls(ca_certificates: str | None) -> ssl.SSLContext:
    """Return the one TLS context for these authorities: reading the system's takes 50 ms."""
    context = ssl.create_default_context(cadata=ca_certificates)
    if ca_certificates is not None:
        # From 3.13 on, Python's default refuses what many private authorities leave out.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    return context
