"""Callers behind a balancer whose set of services changes, and what each of them was told."""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.support.processes import Service
from tests.support.raw_streams import CHAT

CALLERS = 4
PAUSE_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Told:
    """What one caller was told."""

    name: str
    status: str
    request_id: str | None


class Rotation:
    """Sends every request to the next of the services that are in rotation."""

    def __init__(self, key: str, model: str) -> None:
        self._key = key
        self._model = model
        self._numbers = itertools.count()
        self._clients: dict[str, httpx2.AsyncClient] = {}
        self._in_flight = Counter[str]()
        self._is_over = False
        self._changed = asyncio.Condition()
        self.told: list[Told] = []

    async def add(self, name: str, service: Service) -> None:
        """Send requests to the service from now on."""
        self._clients[name] = service.client(self._key)
        async with self._changed:
            self._changed.notify_all()

    async def remove(self, name: str) -> None:
        """Send it nothing any more, and wait until it has answered everything."""
        client = self._clients.pop(name)
        async with self._changed:
            await self._changed.wait_for(lambda: self._in_flight[name] == 0)
        await client.aclose()

    async def served(self, count: int) -> None:
        """Wait until every service in rotation has answered so many more requests."""
        begin = Counter(told.name for told in self.told)

        def is_enough() -> bool:
            now = Counter(told.name for told in self.told)
            return all(now[name] - begin[name] >= count for name in self._clients)

        async with self._changed:
            await self._changed.wait_for(is_enough)

    async def call_until_stopped(self) -> None:
        while not self._is_over:
            number = next(self._numbers)
            names = sorted(self._clients)
            name = names[number % len(names)]
            self._in_flight[name] += 1
            told = await self._ask(name, number)
            self.told.append(told)
            async with self._changed:
                self._in_flight[name] -= 1
                self._changed.notify_all()
            await asyncio.sleep(PAUSE_SECONDS)

    def stop(self) -> None:
        self._is_over = True

    async def close(self) -> None:
        """Close the connections to the services that are still in rotation."""
        for client in self._clients.values():
            await client.aclose()

    async def _ask(self, name: str, number: int) -> Told:
        is_stream = number % 3 == 0
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": "user", "content": "word " * (number % 20)}],
            "max_tokens": 8,
            "stream": is_stream,
        }
        request_id = None
        try:
            async with self._clients[name].stream("POST", CHAT, json=body) as answer:
                request_id = answer.headers["x-request-id"]
                text = (await answer.aread()).decode()
        except httpx2.HTTPError as error:
            return Told(name=name, status=type(error).__name__, request_id=request_id)
        is_whole = not is_stream or text.rstrip().endswith("[DONE]")
        status = str(answer.status_code) if is_whole else "cut"
        if answer.is_error:
            status = f"{status} {text}"
        return Told(name=name, status=status, request_id=request_id)


@asynccontextmanager
async def calling(rotation: Rotation) -> AsyncGenerator[None]:
    """Let callers call inside; at the end all of them have their answers."""
    callers = [asyncio.create_task(rotation.call_until_stopped()) for _ in range(CALLERS)]
    try:
        yield
    finally:
        rotation.stop()
        await asyncio.gather(*callers)
        await rotation.close()
