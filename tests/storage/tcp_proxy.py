"""A wire between a client and a server that a test can cut, block and mend."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

PIECE_BYTES_MAX = 65_536


class TcpProxy:
    """Passes bytes on while it is whole. Its port stays the same whatever happens to it."""

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._is_refusing = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> int:
        """Listen on a free port of loopback; returns it."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        assert self._server is not None
        self.cut()
        self._server.close()
        await self._server.wait_closed()

    def cut(self) -> None:
        """Reset every connection and refuse new ones, as a server that died."""
        self._is_refusing = True
        self._is_open.set()
        for writer in self._writers:
            writer.transport.abort()

    def block(self) -> None:
        """Swallow everything without a word, as a network that lost its way."""
        self._is_open.clear()

    def mend(self) -> None:
        self._is_refusing = False
        self._is_open.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_refusing:
            writer.transport.abort()
            return
        # A connection that ends on either side ends on both.
        with contextlib.suppress(OSError):
            upstream_reader, upstream_writer = await asyncio.open_connection(*self._upstream)
            async with self._held(writer), self._held(upstream_writer):
                passing = [
                    asyncio.create_task(self._pass(reader, upstream_writer)),
                    asyncio.create_task(self._pass(upstream_reader, writer)),
                ]
                await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
                for task in passing:
                    task.cancel()
                await asyncio.gather(*passing, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def _held(self, writer: asyncio.StreamWriter) -> AsyncGenerator[None]:
        self._writers.add(writer)
        try:
            yield
        finally:
            self._writers.discard(writer)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(PIECE_BYTES_MAX):
            await self._is_open.wait()
            writer.write(data)
            await writer.drain()


@contextlib.asynccontextmanager
async def proxied(url: str) -> AsyncGenerator[tuple[str, TcpProxy]]:
    """The same database behind a wire: its new URL, and the wire."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    proxy = TcpProxy(parts.hostname, parts.port or 5432)
    port = await proxy.start()
    try:
        yield parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}").geturl(), proxy
    finally:
        await proxy.stop()
