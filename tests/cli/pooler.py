"""A connection pooler in transaction mode, in front of one connection to PostgreSQL.

Between transactions a client holds no server process; whoever comes next gets the same one.
"""

import asyncio
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

SSL_REQUEST = 80_877_103
PROTOCOL_VERSION = 196_608
TERMINATE = b"X"
READY = b"Z"
IDLE = b"I"


class Pooler:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._in_transaction = asyncio.Lock()
        self._greeting = b""

    async def log_in(self, user: str, database: str) -> None:
        """Remember the server's greeting: each client gets the same."""
        body = f"user\0{user}\0database\0{database}\0\0".encode()
        self._writer.write(struct.pack("!II", 8 + len(body), PROTOCOL_VERSION) + body)
        kind = b""
        while kind != READY:
            kind, message = await read_message(self._reader)
            self._greeting += message

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._greet(reader, writer)
            while True:
                kind, message = await read_message(reader)
                if kind == TERMINATE:
                    break
                async with self._in_transaction:
                    await self._transact(message, reader, writer)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        length, code = struct.unpack("!II", await reader.readexactly(8))
        if code == SSL_REQUEST:
            writer.write(b"N")
            length, _ = struct.unpack("!II", await reader.readexactly(8))
        await reader.readexactly(length - 8)
        writer.write(self._greeting)

    async def _transact(
        self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._writer.write(first)
        forwarding = asyncio.create_task(self._forward(reader))
        try:
            while True:
                kind, message = await read_message(self._reader)
                writer.write(message)
                if kind == READY and message.endswith(IDLE):
                    return
        finally:
            forwarding.cancel()

    async def _forward(self, reader: asyncio.StreamReader) -> None:
        while True:
            _, message = await read_message(reader)
            self._writer.write(message)


async def read_message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    (length,) = struct.unpack("!I", head[1:])
    return head[:1], head + await reader.readexactly(length - 4)


@asynccontextmanager
async def running_pooler(database_url: str) -> AsyncGenerator[str, None]:
    """Yields the address to use instead of the database's own."""
    parts = urlsplit(database_url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    pooler = Pooler(reader, writer)
    await pooler.log_in(parts.username or "", parts.path.removeprefix("/"))
    server = await asyncio.start_server(pooler.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}").geturl()
    finally:
        server.close()
        writer.close()
