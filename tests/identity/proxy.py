"""A TCP proxy that can be cut, can fall silent, and can swallow what the far side answers."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

PIECE_BYTES_MAX = 65_536


class Proxy:
    """One address in front of another."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._server: asyncio.Server | None = None
        self._pipes: set[asyncio.Task[None]] = set()
        self._passes = asyncio.Event()
        self._passes.set()
        self._swallows_answers = False
        self.answer_swallowed = asyncio.Event()
        self.port = 0

    async def open(self) -> None:
        """Listen, again at the same port when it was cut before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Break every connection and refuse new ones."""
        assert self._server is not None
        self._server.close()
        for pipe in self._pipes:
            pipe.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    def fall_silent(self) -> None:
        """Accept and read on, but pass nothing: what a lost network looks like."""
        self._passes.clear()

    def speak(self) -> None:
        self._passes.set()

    def swallow_answers(self) -> None:
        """From now on throw away what the far side says; `answer_swallowed` tells when it did."""
        self._swallows_answers = True
        self.answer_swallowed.clear()

    def hear_answers(self) -> None:
        self._swallows_answers = False

    async def close(self) -> None:
        if self._server is not None:
            await self.cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pipes.add(task)
        try:
            await self._join(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._pipes.discard(task)
            writer.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*self._target)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass(reader, far_writer, is_answer=False))
                both.create_task(self._pass(far_reader, writer, is_answer=True))
        except* ConnectionError:
            pass
        finally:
            far_writer.transport.abort()

    async def _pass(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        while data := await source.read(PIECE_BYTES_MAX):
            await self._passes.wait()
            if is_answer and self._swallows_answers:
                self.answer_swallowed.set()
                continue
            sink.write(data)
            await sink.drain()
        with suppress(OSError):
            sink.write_eof()


@asynccontextmanager
async def proxied(host: str, port: int) -> AsyncGenerator[Proxy]:
    proxy = Proxy(host, port)
    await proxy.open()
    try:
        yield proxy
    finally:
        proxy.speak()
        await proxy.close()
