"""Monitoring: the same questions, beside the request. Whoever called never feels it.

It may be dropped, by a bound or by the end of the process, and then is counted: what was decided
and what was dropped together are all that should have been decided.
"""

import asyncio
from collections.abc import Awaitable, Callable

from tollhouse.base.tasks import Tasks
from tollhouse.observability import metrics
from tollhouse.observability.metrics import DecisionLoss

AT_ONCE_MAX = 32


class Watcher:
    """One per worker."""

    def __init__(self, tasks: Tasks, *, waiting_max: int, bytes_max: int) -> None:
        self._tasks = tasks
        self._waiting_max = waiting_max
        self._bytes_max = bytes_max
        self._waiting = 0
        self._bytes = 0
        self._turns = asyncio.Semaphore(AT_ONCE_MAX)

    def take(self, work: Callable[[], Awaitable[None]], *, policies: int, size_bytes: int) -> None:
        """Do it later, if there is room. `size_bytes` is about what it keeps in memory."""
        if self._waiting >= self._waiting_max or self._bytes + size_bytes > self._bytes_max:
            metrics.decisions_dropped(policies, DecisionLoss.NO_ROOM)
            return
        self._waiting += 1
        self._bytes += size_bytes
        task = self._tasks.start("watch", self._in_turn(work))
        task.add_done_callback(lambda done: self._ended(done, policies, size_bytes))

    async def _in_turn(self, work: Callable[[], Awaitable[None]]) -> None:
        async with self._turns:
            await work()

    def _ended(self, done: "asyncio.Task[None]", policies: int, size_bytes: int) -> None:
        self._waiting -= 1
        self._bytes -= size_bytes
        if done.cancelled():
            metrics.decisions_dropped(policies, DecisionLoss.STOPPED)
        elif done.exception() is not None:
            metrics.decisions_dropped(policies, DecisionLoss.FAILED)
