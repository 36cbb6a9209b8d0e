"""The way to upstreams and back: HTTP/1.1 over connections that are kept for a while.

What follows from a URL, and only that, is asked: no redirect is followed, no proxy variable, cookie
or compression is taken up. Another client can replace this one without touching a caller.
"""

import asyncio
import ssl
from collections.abc import Coroutine, Mapping
from functools import cache
from typing import Any, Final

from tollhouse.backends.connection import Connection
from tollhouse.backends.http_request import Method, Origin, request_head
from tollhouse.backends.idle import IdleConnections
from tollhouse.backends.transport_errors import BodyTooLarge, NotConnected

CONNECTING_FAILURES: Final = (OSError, UnicodeError)
"""A name that is none cannot even be asked for."""


class Response:
    """An answer whose head has arrived. Whoever got it must close it."""

    __slots__ = ("_connection", "_headers", "_idle", "_is_closed", "_origin", "status")

    def __init__(
        self,
        idle: IdleConnections,
        origin: Origin,
        connection: Connection,
        *,
        status: int,
        headers: Mapping[bytes, bytes],
    ) -> None:
        self._idle = idle
        self._origin = origin
        self._connection = connection
        self._headers = headers
        self._is_closed = False
        self.status = status

    def header(self, name: str) -> str | None:
        """The first value of a header, whatever the case of its name."""
        value = self._headers.get(name.lower().encode())
        return None if value is None else value.decode("latin-1").strip(" \t")

    def next_bytes(self) -> Coroutine[Any, Any, bytes]:
        """What has arrived, waiting for some; empty at the end of the body."""
        assert not self._is_closed, "the connection may already be another's"
        return self._connection.next_bytes()

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

    def give_up(self) -> None:
        """Whoever waits for more shall hear that it took too long."""
        if not self._is_closed:
            self._connection.give_up()

    def close(self) -> None:
        """Give the connection back if the body came to its end, else cut it at once."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._connection.is_reusable:
            self._idle.put(self._origin, self._connection)
        else:
            self._connection.abort()


class Transport:
    """The connections of one worker to all upstreams. Made inside a running event loop."""

    def __init__(self) -> None:
        # Connections are bounded where they are asked for, by backend.
        self._open: set[Connection] = set()
        self._idle = IdleConnections()

    async def open(
        self,
        method: Method,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        connect_seconds: float,
    ) -> Response:
        """Send a request and wait for the head of its answer. Only connecting is timed here."""
        head = request_head(method, url, tuple(headers.items()))
        origin = head.origin
        connection = self._idle.take(origin) or await self._connected(origin, connect_seconds)
        try:
            status, received = await connection.ask(head.with_body(body), body)
        except BaseException:
            connection.abort()
            raise
        return Response(self._idle, origin, connection, status=status, headers=received)

    async def close(self) -> None:
        """Close every connection, those of unfinished answers too."""
        self._idle.close()
        for connection in tuple(self._open):
            connection.abort()

    async def _connected(self, origin: Origin, connect_seconds: float) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(connect_seconds):
                _, connection = await loop.create_connection(
                    lambda: Connection(self._open.discard),
                    origin.host,
                    origin.port,
                    ssl=_tls() if origin.is_tls else None,
                )
        except CONNECTING_FAILURES:
            raise NotConnected from None
        self._open.add(connection)
        return connection


@cache
def _tls() -> ssl.SSLContext:
    """Made once: reading the system's authorities takes 50 ms."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
