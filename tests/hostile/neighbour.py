"""Another organization's requests, paced, from a process of their own."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from multiprocessing.connection import Connection
from statistics import median

import msgspec

from tests.storage.processes import next_word, running
from tests.support.raw_streams import CHAT

QUIET_REQUESTS = 40
QUIET_PAUSE_SECONDS = 0.003
REQUESTS = 60
PAUSE_SECONDS = 0.015
FAILED_MS = 10_000.0
FACTOR_MAX = 3.0
FLOOR_MS = 8.0
"""The quiet p50 of the machine on which the factor was set: a faster one has no stricter bar."""
WAIT_SECONDS_MAX = 10.0


def measure(line: Connection, address: tuple[str, int], key: str, body: bytes) -> None:
    """For every count and pause that comes in: ask so often, and tell what each took in ms."""
    while True:
        count, pause_seconds = line.recv()
        connection = HTTPConnection(*address, timeout=WAIT_SECONDS_MAX)
        # The first request opens the connection, and is not measured.
        taken = [_ask(connection, key, body, pause_seconds) for _ in range(count + 1)]
        connection.close()
        line.send(taken[1:])


def _ask(connection: HTTPConnection, key: str, body: bytes, pause_seconds: float) -> float:
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    began = time.perf_counter()
    try:
        connection.request("POST", CHAT, body, headers)
        answer = connection.getresponse()
        answer.read()
        is_answered = answer.status == 200
    except (OSError, HTTPException):
        connection.close()
        is_answered = False
    taken_ms = (time.perf_counter() - began) * 1000
    time.sleep(pause_seconds)
    return taken_ms if is_answered else FAILED_MS


@dataclass(frozen=True)
class Neighbour:
    """Measures how long its own requests take, quiet and beside an attack."""

    line: Connection

    async def quiet_p50_ms(self) -> float:
        """Measure while nothing else happens."""
        self.line.send((QUIET_REQUESTS, QUIET_PAUSE_SECONDS))
        return await self._p50_ms()

    def start(self) -> "asyncio.Task[float]":
        """Begin to ask; the task returns the median once all requests were answered."""
        self.line.send((REQUESTS, PAUSE_SECONDS))
        return asyncio.create_task(self._p50_ms())

    async def ask(self, count: int, pause_seconds: float) -> list[float]:
        """Ask so often; return what each request took in ms."""
        self.line.send((count, pause_seconds))
        return msgspec.convert(await next_word(self.line), list[float])

    async def _p50_ms(self) -> float:
        taken = await next_word(self.line)
        return median(msgspec.convert(taken, list[float]))


def slowdown(quiet_ms: float, busy_ms: float) -> float:
    """Return how many times longer the median took beside the attack."""
    return busy_ms / max(quiet_ms, FLOOR_MS)


@asynccontextmanager
async def running_neighbour(
    address: tuple[str, int], key: str, body: bytes
) -> AsyncGenerator[Neighbour]:
    async with running(measure, address, key, body) as (_, line):
        yield Neighbour(line)
