"""Background work that is owned by the process: tracked, named, and drained at shutdown."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from tollhouse.base.errors import ServiceUnavailable

T = TypeVar("T")

logger = logging.getLogger("tollhouse.tasks")


class Tasks:
    """The only starter of tasks. A task that nobody holds may vanish; these cannot."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, name: str, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` on its own; a failure is logged, since nobody may be awaiting it."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            logger.error("task_failed", exc_info=failure, extra={"task": task.get_name()})

    async def drain(self, *, deadline_seconds: float) -> int:
        """Wait for all, cancel what is left at the deadline; returns how many were cancelled."""
        loop = asyncio.get_running_loop()
        until = loop.time() + deadline_seconds
        # What is running may start more.
        while self._running and loop.time() < until:
            await asyncio.wait(self._running, timeout=until - loop.time())
        late = [task for task in self._running if not task.done()]
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        return len(late)


async def is_done(future: "asyncio.Future[Any]", *, within_seconds: float) -> bool:
    """Wait for what somebody else owns: neither time nor whoever cancels us ends it.

    `asyncio.wait` does the same for many, at twice the cost.
    """
    if future.done():
        return True
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def wake(_: object = None) -> None:
        if not waiter.done():
            waiter.set_result(None)

    future.add_done_callback(wake)
    timer = loop.call_later(within_seconds, wake)
    try:
        await waiter
    finally:
        timer.cancel()
        future.remove_done_callback(wake)
    return future.done()


async def repeated(
    name: str, work: Callable[[], Awaitable[object]], *, every_seconds: float
) -> None:
    """Do it again and again until cancelled. A turn that fails is told, and the next one comes."""
    while True:
        try:
            await work()
        except ServiceUnavailable as failure:
            logger.warning("task_failed", extra={"task": name, "reason": failure.message})
        except Exception:  # the last line: who tends this loop sees it only if it goes on
            logger.exception("task_failed", extra={"task": name})
        await asyncio.sleep(every_seconds)
