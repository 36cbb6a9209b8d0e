"""A keep-alive client that counts: who answered, what failed, how long it took."""

import asyncio
from typing import Any, Self

from tests.serving.raw import Response, parse

WAIT_SECONDS_MAX = 120.0


class Client:
    """One connection at a time; opens another when the server announced that it closes."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._stream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.is_fresh = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        self.close()

    async def get(self, path: str) -> Response:
        """One request; a broken connection raises ConnectionError and is forgotten."""
        self.is_fresh = self._stream is None
        if self._stream is None:
            self._stream = await asyncio.open_connection(*self._address)
        reader, writer = self._stream
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        try:
            response = await _read_response(reader)
        except ConnectionError:
            self.close()
            raise
        if response.headers.get("connection") == "close":
            self.close()
        return response

    async def report(self, path: str = "/echo") -> dict[str, Any]:
        return (await self.get(path)).json()

    def close(self) -> None:
        if self._stream is not None:
            self._stream[1].transport.abort()
            self._stream = None


class Load:
    """Clients that ask without a pause until they are stopped."""

    def __init__(self, address: tuple[str, int], *, clients: int) -> None:
        self._address = address
        self._is_over = asyncio.Event()
        self._clients = clients
        self._tasks = [asyncio.create_task(self._run()) for _ in range(clients)]
        self._clients_answered = 0
        self.answered_by: dict[int, int] = {}
        self.broken_on: list[int] = []
        self.broken_fresh = 0
        self.latencies_seconds: list[float] = []
        self._progress = asyncio.Condition()

    async def _run(self) -> None:
        client = Client(self._address)
        process_id, is_first = 0, True
        clock = asyncio.get_running_loop().time
        while not self._is_over.is_set():
            began = clock()
            try:
                process_id = (await client.report())["pid"]
            except ConnectionError:
                self.broken_fresh += client.is_fresh
                self.broken_on.append(process_id)
                continue
            self.latencies_seconds.append(clock() - began)
            self._clients_answered += is_first
            is_first = False
            self.answered_by[process_id] = self.answered_by.get(process_id, 0) + 1
            async with self._progress:
                self._progress.notify_all()
        client.close()

    async def until_answered(self, count: int) -> None:
        """Wait until `count` more requests have been answered."""
        goal = sum(self.answered_by.values()) + count
        async with asyncio.timeout(WAIT_SECONDS_MAX), self._progress:
            await self._progress.wait_for(lambda: sum(self.answered_by.values()) >= goal)

    async def until_all_connected(self) -> None:
        """Wait until every client has been answered once."""
        async with asyncio.timeout(WAIT_SECONDS_MAX), self._progress:
            await self._progress.wait_for(lambda: self._clients_answered == self._clients)

    async def stop(self) -> None:
        self._is_over.set()
        await asyncio.gather(*self._tasks)


async def _read_response(reader: asyncio.StreamReader) -> Response:
    received = b""
    while True:
        data = await reader.read(65_536)
        if not data:
            message = "closed before the answer was whole"
            raise ConnectionResetError(message)
        received += data
        responses, _ = parse(received)
        if responses:
            return responses[0]


async def ask_once(address: tuple[str, int], path: str = "/echo") -> dict[str, Any]:
    """One request on a connection of its own."""
    async with Client(address) as client:
        return await client.report(path)
