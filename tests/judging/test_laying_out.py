"""One content at a time is laid out beside the event loop, also when nobody waits for it."""

import asyncio
import threading

import pytest

from tollhouse.judging.laying_out import ON_LOOP_BYTES_MAX, Desk

LARGE = ON_LOOP_BYTES_MAX + 1


async def test_whoever_leaves_does_not_free_the_desk() -> None:
    desk, may_end, has_begun = Desk(), threading.Event(), threading.Event()
    at_once: list[int] = []

    def work() -> int:
        at_once.append(len(at_once) + 1)
        has_begun.set()
        may_end.wait(30)
        return len(at_once)

    leaving = asyncio.create_task(desk.make(work, size_bytes=LARGE))
    await asyncio.to_thread(has_begun.wait, 30)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    waiting = asyncio.create_task(desk.make(work, size_bytes=LARGE))
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(at_once) == 1
    may_end.set()

    assert await waiting == 2


async def test_a_failure_is_told_and_frees_the_desk() -> None:
    desk = Desk()

    def fail() -> None:
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await desk.make(fail, size_bytes=LARGE)


async def test_what_is_small_is_done_at_once() -> None:
    thread = await Desk().make(threading.get_ident, size_bytes=ON_LOOP_BYTES_MAX)

    assert thread == threading.get_ident()
    assert await Desk().make(threading.get_ident, size_bytes=LARGE) != thread
