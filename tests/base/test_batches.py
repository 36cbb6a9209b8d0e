"""Batches that one runner carries out, one after the other."""

import asyncio
from collections import deque
from collections.abc import Sequence

import pytest

from tollhouse.base.joined import BatchRunner
from tollhouse.base.tasks import Tasks

TIMEOUT_SECONDS = 60.0


class Bug(Exception):
    """What a batch fails with here."""


async def test_items_behind_a_batch_with_a_bug_are_run(caplog: pytest.LogCaptureFixture) -> None:
    waiting, ran, stopped = deque(range(3)), list[int](), list[int]()
    is_over = asyncio.Event()

    def next_batch() -> Sequence[int]:
        return [waiting.popleft()] if waiting else []

    async def run(batch: Sequence[int]) -> None:
        if batch == [1]:
            raise Bug
        ran.extend(batch)
        if not waiting:
            is_over.set()

    tasks = Tasks()
    runner = BatchRunner(tasks, "batches", next_batch=next_batch, run=run, stopped=stopped.extend)
    runner.wake()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await is_over.wait()
    await tasks.drain(deadline_seconds=TIMEOUT_SECONDS)

    assert (ran, stopped) == ([0, 2], [1])
    assert [record.message for record in caplog.records] == ["task_failed"]


async def test_a_cancelled_runner_does_not_start_again() -> None:
    waiting, stopped = deque(range(3)), list[int]()
    has_begun = asyncio.Event()

    def next_batch() -> Sequence[int]:
        return [waiting.popleft()] if waiting else []

    async def run(_: Sequence[int]) -> None:
        has_begun.set()
        await asyncio.Event().wait()

    tasks = Tasks()
    runner = BatchRunner(tasks, "batches", next_batch=next_batch, run=run, stopped=stopped.extend)
    runner.wake()
    await has_begun.wait()
    await tasks.drain(deadline_seconds=0)
    await asyncio.sleep(0)

    assert stopped == [0]
    assert list(waiting) == [1, 2]
    assert await tasks.drain(deadline_seconds=0) == 0, "no task was started after the drain"
