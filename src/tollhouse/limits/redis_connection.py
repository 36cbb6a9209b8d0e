"""A connection to Redis whose answers are read line by line, without the library's parser.

The library connects, because it knows URLs, TLS and passwords. From then on the socket is ours:
its parser takes some forty calls for the answers of one request.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, cast

from redis.asyncio.connection import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import InvalidResponse

LINE_BYTES_MAX: Final = 65_536


class RedisTransport(Protocol):
    """The part of an asyncio transport that is used here."""

    def write(self, data: bytes) -> None:
        """Send commands, without waiting."""
        ...

    def close(self) -> None:
        """Close the connection; no more answers are read."""
        ...


class AnswerReader(asyncio.Protocol):
    """Passes on the lines of Redis's answers, and the end of the connection.

    Scripts answer with a status or an error, and each of these is one line.
    """

    def __init__(
        self,
        received: Callable[[list[bytes]], None],
        closed: Callable[["AnswerReader", BaseException | None], None],
    ) -> None:
        self._received = received
        self._closed = closed
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        """Pass on the lines that are complete."""
        lines = (self._rest + data).split(b"\r\n")
        self._rest = lines.pop()
        if len(self._rest) > LINE_BYTES_MAX:
            self._closed(self, InvalidResponse("The answer of Redis is too long."))
        else:
            self._received(lines)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Pass on that the connection has ended."""
        self._closed(self, exc)


Connect = Callable[[str, AnswerReader], Awaitable[RedisTransport]]
"""Opens a connection to a URL."""


class _LibraryConnection(Protocol):
    """The part of the library's connection that is used here; its own types are incomplete."""

    _reader: asyncio.StreamReader | None
    _writer: asyncio.StreamWriter | None

    async def connect(self) -> None: ...

    async def on_connect(self) -> None: ...


class _DetachedTransport:
    """Refers to the stream, which closes its socket when it is collected."""

    def __init__(self, stream: asyncio.StreamWriter) -> None:
        self._stream = stream
        self.write = stream.transport.write
        # Every answer has come, or is not waited for: no shutdown of TLS is waited for either.
        self.close = stream.transport.abort


async def connect(url: str, reader: AnswerReader) -> RedisTransport:
    """Open a connection whose answers go to `reader`."""
    # Without retries: a call that is repeated would be counted twice.
    pool = ConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType] - theirs
        url,
        protocol=2,
        socket_timeout=None,
        retry=Retry(NoBackoff(), 0),
        redis_connect_func=prepare,
    )
    connection = cast("_LibraryConnection", pool.make_connection())
    await connection.connect()
    return _detached(connection, reader)


async def prepare(connection: _LibraryConnection) -> None:
    """Authenticate. A refused connection ends at once: the library begins a shutdown of TLS."""
    stream = connection._writer  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    assert stream is not None, "the connection is open"
    try:
        await connection.on_connect()
    except BaseException:
        stream.transport.abort()
        raise


def _detached(connection: _LibraryConnection, reader: AnswerReader) -> RedisTransport:
    """Take the socket from the library's connection, for which there is no public way."""
    stream = connection._writer  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    assert stream is not None, "the connection is open"
    connection._reader = connection._writer = None  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    stream.transport.set_protocol(reader)
    return _DetachedTransport(stream)
