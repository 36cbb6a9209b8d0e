"""Micro-batching, and the failure of a future that several callers may await."""

from asyncio import Future
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from tollhouse.base.tasks import Tasks

ItemT = TypeVar("ItemT")


class BatchRunner(Generic[ItemT]):
    """Runs one batch at a time: items that arrive meanwhile go into the next batch.

    `next_batch` removes items from the caller's queue and returns none when it is empty. `stopped`
    gets the batch that did not return, because of a bug or because the process stops.
    """

    def __init__(
        self,
        tasks: Tasks,
        name: str,
        *,
        next_batch: Callable[[], Sequence[ItemT]],
        run: Callable[[Sequence[ItemT]], Awaitable[None]],
        stopped: Callable[[Sequence[ItemT]], None],
    ) -> None:
        self._tasks = tasks
        self._name = name
        self._next_batch = next_batch
        self._run = run
        self._stopped = stopped
        self._is_running = False

    def wake(self) -> None:
        """Run the queued items, now or after the batch that is under way."""
        if not self._is_running:
            self._is_running = True
            self._tasks.start(self._name, self._run_all())

    async def _run_all(self) -> None:
        batch: Sequence[ItemT] = ()
        try:
            while batch := self._next_batch():
                await self._run(batch)
        finally:
            self._is_running = False
            self._stopped(batch)


def fail(future: "Future[Any]", failure: Exception) -> None:
    """Raise `failure` in the callers that still await the future, if there are any."""
    if not future.done():
        future.set_exception(failure)
        # Marks the exception as retrieved; asyncio logs it otherwise if no caller is left.
        future.exception()
