"""Detects workers whose event loop does not run: stopped by a signal, or in a long computation."""

import asyncio
import logging
from collections.abc import Collection
from typing import Final

from tollhouse.base.clock import Clock
from tollhouse.serving.process import WorkerProcess

TICK_SECONDS: Final = 1.0

COUNTED_SECONDS_MAX: Final = 2.0
"""The most that one tick counts. If it comes later, the supervisor itself did not run."""

logger = logging.getLogger("tollhouse.supervisor")


async def kill_silent_workers(workers: Collection[WorkerProcess], clock: Clock) -> None:
    """Kill each worker that sends no status line for too long. Its owner starts another one.

    Only time in which this task ran counts. If the supervisor was stopped together with its
    workers, as on a suspended machine, it receives their status lines before their time is over.
    """
    before_seconds = clock.monotonic_seconds()
    while True:
        await asyncio.sleep(TICK_SECONDS)
        now_seconds = clock.monotonic_seconds()
        passed_seconds = min(now_seconds - before_seconds, COUNTED_SECONDS_MAX)
        before_seconds = now_seconds
        for worker in tuple(workers):
            worker.add_silence(passed_seconds)
            if worker.is_stuck:
                reason = f"no status line for {worker.silent_seconds:.0f} seconds"
                facts = {"worker": worker.process_id, "reason": reason}
                logger.error("worker_silent", extra=facts)
                worker.kill_to_replace()
