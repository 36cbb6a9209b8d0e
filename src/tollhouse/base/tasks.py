"""Background tasks of the process: named, tracked, and drained at shutdown."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from tollhouse.base.errors import ServiceUnavailable

T = TypeVar("T")

logger = logging.getLogger("tollhouse.tasks")


class Tasks:
    """Starts tasks and keeps a reference to each: asyncio may otherwise collect a running task."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()
        self._is_draining = asyncio.Event()

    def start(self, name: str, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start `work` as a task. Its failure is logged, because it may not be awaited."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._finished)
        return task

    def repeat(
        self, name: str, work: Callable[[], Awaitable[object]], every_seconds: float
    ) -> asyncio.Task[None]:
        """Start to run `work` every `every_seconds`. Failures are logged and do not end it."""
        return self.start(name, self._repeat(name, work, every_seconds))

    async def _repeat(
        self, name: str, work: Callable[[], Awaitable[object]], every_seconds: float
    ) -> None:
        while not self._is_draining.is_set():
            try:
                await work()
            except ServiceUnavailable as failure:
                logger.warning("task_failed", extra={"task": name, "reason": failure.message})
            except Exception:  # a job must survive its bugs
                logger.exception("task_failed", extra={"task": name})
            with suppress(TimeoutError):
                async with asyncio.timeout(every_seconds):
                    await self._is_draining.wait()

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            logger.error("task_failed", exc_info=failure, extra={"task": task.get_name()})

    async def drain(self, *, deadline_seconds: float) -> int:
        """Wait for all tasks; cancel the rest at the deadline and return how many that were.

        Repeated work ends after its turn: cancelled in mid-turn, it would cut off statements.
        """
        self._is_draining.set()
        loop = asyncio.get_running_loop()
        until = loop.time() + deadline_seconds
        # A running task may start others.
        while self._running and loop.time() < until:
            await asyncio.wait(self._running, timeout=until - loop.time())
        late = [task for task in self._running if not task.done()]
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        return len(late)


async def is_done(future: "asyncio.Future[Any]", *, within_seconds: float) -> bool:
    """Wait until the future is done or the time is over. Returns whether it is done.

    Neither the timeout nor a cancellation of this wait cancels the future. `asyncio.wait` does the
    same for several futures, at twice the cost.
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
