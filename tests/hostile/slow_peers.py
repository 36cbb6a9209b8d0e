"""Connections that never finish their requests, from a process of their own."""

import asyncio
import resource
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from time import monotonic

import msgspec

from tests.hostile.clients import request_head
from tests.storage.processes import next_word, running
from tests.support.raw_streams import CHAT

CONNECTING_MAX = 50
DRIP_SECONDS = 1.0
BODY_BYTES = 1_000
OPEN = "open"


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """How the server ended a slow connection, and after how long."""

    is_head: bool
    status: int
    seconds: float


class SlowPeers:
    """Half of them drip their heads, half stop within their bodies; a cut one comes again."""

    def __init__(self, address: tuple[str, int], key: str, count: int) -> None:
        self._address = address
        self._head = request_head(CHAT, key, BODY_BYTES)
        self._count = count
        self._connecting = asyncio.Semaphore(CONNECTING_MAX)
        self._connected = 0
        self._all_connected = asyncio.Event()
        self.cuts: list[Cut] = []

    def start(self) -> list["asyncio.Task[None]"]:
        return [asyncio.create_task(self._run(number % 2 == 0)) for number in range(self._count)]

    async def until_open(self) -> None:
        await self._all_connected.wait()

    async def until_all_cut(self) -> None:
        """Wait until as many heads and bodies were cut as there are."""
        while min(self._cut(is_head=True), self._cut(is_head=False)) < self._count // 2:  # noqa: ASYNC110
            await asyncio.sleep(DRIP_SECONDS)

    def _cut(self, *, is_head: bool) -> int:
        return sum(cut.is_head is is_head for cut in self.cuts)

    async def _run(self, is_head: bool) -> None:
        while True:
            async with self._connecting:
                reader, writer = await asyncio.open_connection(*self._address)
                writer.write(self._head[:1] if is_head else self._head + b"{")
                began = monotonic()
            self._connected += 1
            if self._connected == self._count:
                self._all_connected.set()
            received = await (self._drip(reader, writer) if is_head else reader.read())
            writer.close()
            status = int(received.split(maxsplit=2)[1]) if received else 0
            self.cuts.append(Cut(is_head=is_head, status=status, seconds=monotonic() - began))

    async def _drip(self, reader: StreamReader, writer: StreamWriter) -> bytes:
        ended = asyncio.create_task(reader.read())
        for byte in self._head[1:-1]:
            if (await asyncio.wait({ended}, timeout=DRIP_SECONDS))[0]:
                break
            writer.write(bytes([byte]))
        return await ended


def attack(line: Connection, address: tuple[str, int], key: str, count: int) -> None:
    """Open all, say so, and tell the cuts once all were cut."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * count)), hard))

    async def run() -> None:
        peers = SlowPeers(address, key, count)
        running_peers = peers.start()
        await peers.until_open()
        line.send(OPEN)
        await peers.until_all_cut()
        line.send(msgspec.to_builtins(peers.cuts))
        await asyncio.gather(*running_peers)

    asyncio.run(run())


@asynccontextmanager
async def slow_peers(address: tuple[str, int], key: str, count: int) -> AsyncGenerator[Connection]:
    """Yield when all are connected; the line tells the cuts later."""
    async with running(attack, address, key, count) as (_, line):
        assert await next_word(line) == OPEN
        yield line
