"""Connections that wait for their next request, and not for long."""

import asyncio
from typing import Final

from tollhouse.backends.connection import Connection
from tollhouse.backends.http_request import Origin

IDLE_SECONDS: Final = 4.0
"""Shorter than the 5 s after which uvicorn and llama.cpp close: a connection must not be reused
while its other end is closing it."""


class IdleConnections:
    """The one that was used last is used next, so that the others grow old and go."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Origin, list[tuple[float, Connection]]] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    def take(self, origin: Origin) -> Connection | None:
        """One that can be used at once, if there is any."""
        waiting = self._waiting.get(origin)
        while waiting:
            put_seconds, connection = waiting.pop()
            if not connection.is_reusable:
                continue
            if self._loop.time() - put_seconds < IDLE_SECONDS:
                return connection
            connection.abort()
        return None

    def put(self, origin: Origin, connection: Connection) -> None:
        """Keep one whose answer is over."""
        connection.rest()
        self._waiting.setdefault(origin, []).append((self._loop.time(), connection))
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(IDLE_SECONDS, self._sweep)

    def close(self) -> None:
        """Forget all; whoever opened them cuts them."""
        self._waiting.clear()
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None

    def _sweep(self) -> None:
        """Close what has grown old. The oldest stand first."""
        self._sweeping = None
        old_seconds = self._loop.time() - IDLE_SECONDS
        for origin, waiting in tuple(self._waiting.items()):
            fresh = [pair for pair in waiting if pair[0] > old_seconds]
            for _, connection in waiting[: len(waiting) - len(fresh)]:
                connection.abort()
            if fresh:
                self._waiting[origin] = fresh
            else:
                del self._waiting[origin]
        if self._waiting:
            self._sweeping = self._loop.call_later(IDLE_SECONDS, self._sweep)
