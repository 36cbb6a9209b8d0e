"""Few contents are rendered at once in threads, and organizations take turns."""

import asyncio
import threading

import pytest

from tollhouse.base.ids import OrganizationId, time_ordered_uuid
from tollhouse.evaluation.content.render_queue import ON_LOOP_BYTES_MAX, RenderQueue

LARGE = ON_LOOP_BYTES_MAX + 1
ONE, OTHER, THIRD = (OrganizationId(time_ordered_uuid()) for _ in range(3))


async def test_whoever_leaves_does_not_free_the_desk() -> None:
    queue, may_end, has_begun = RenderQueue(), threading.Event(), threading.Event()
    at_once: list[int] = []

    def work() -> int:
        at_once.append(len(at_once) + 1)
        has_begun.set()
        may_end.wait(30)
        return len(at_once)

    leaving = asyncio.create_task(queue.run(ONE, work, size_bytes=LARGE))
    await asyncio.to_thread(has_begun.wait, 30)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    waiting = asyncio.create_task(queue.run(ONE, work, size_bytes=LARGE))
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(at_once) == 1
    may_end.set()

    assert await waiting == 2


async def test_a_failure_is_told_and_frees_the_desk() -> None:
    queue = RenderQueue()

    def fail() -> None:
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await queue.run(ONE, fail, size_bytes=LARGE)


async def test_what_is_small_is_done_at_once() -> None:
    thread = await RenderQueue().run(ONE, threading.get_ident, size_bytes=ON_LOOP_BYTES_MAX)

    assert thread == threading.get_ident()
    assert await RenderQueue().run(ONE, threading.get_ident, size_bytes=LARGE) != thread


class Works:
    """Contents that end when the test says so; notes the order in which they begin."""

    def __init__(self, queue: RenderQueue) -> None:
        self._desk = queue
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Condition()
        self.begun: list[tuple[OrganizationId, int]] = []
        self._may_end: dict[tuple[OrganizationId, int], threading.Event] = {}
        self.tasks: list[asyncio.Task[None]] = []

    async def put(self, organization_id: OrganizationId, *numbers: int) -> None:
        """Ask for these, and let each come as far as it can."""
        for number in numbers:
            name = (organization_id, number)
            self._may_end[name] = threading.Event()
            making = self._desk.run(
                organization_id, lambda name=name: self._work(name), size_bytes=LARGE
            )
            self.tasks.append(asyncio.create_task(making))
            await asyncio.sleep(0)

    def _work(self, name: tuple[OrganizationId, int]) -> None:
        asyncio.run_coroutine_threadsafe(self._begin(name), self._loop)
        self._may_end[name].wait(30)

    async def _begin(self, name: tuple[OrganizationId, int]) -> None:
        async with self._changed:
            self.begun.append(name)
            self._changed.notify_all()

    async def have_begun(self, count: int) -> list[tuple[OrganizationId, int]]:
        """Wait for so many, and see that no further one begins."""
        async with asyncio.timeout(30), self._changed:
            await self._changed.wait_for(lambda: len(self.begun) >= count)
        await asyncio.to_thread(lambda: None)
        assert len(self.begun) == count
        return self.begun

    def end(self, organization_id: OrganizationId, number: int) -> None:
        self._may_end[organization_id, number].set()

    async def end_all(self) -> None:
        for event in self._may_end.values():
            event.set()
        await asyncio.gather(*self.tasks)


async def test_one_organization_never_takes_both_threads() -> None:
    works = Works(RenderQueue(at_once_max=2))

    await works.put(ONE, 1, 2, 3)
    assert await works.have_begun(1) == [(ONE, 1)]
    await works.put(OTHER, 1)

    assert (await works.have_begun(2))[-1] == (OTHER, 1)
    await works.end_all()
    assert len(works.begun) == 4


async def test_organizations_take_turns() -> None:
    works = Works(RenderQueue())

    await works.put(ONE, 1, 2, 3)
    await works.put(OTHER, 1, 2)
    await works.put(THIRD, 1)
    order = [(ONE, 1), (OTHER, 1), (THIRD, 1), (ONE, 2), (OTHER, 2), (ONE, 3)]
    for count, name in enumerate(order, 1):
        assert (await works.have_begun(count))[-1] == name
        works.end(*name)

    await works.end_all()


async def test_who_leaves_while_waiting_does_not_stop_the_others() -> None:
    works = Works(RenderQueue())

    await works.put(ONE, 1)
    await works.put(OTHER, 1, 2)
    await works.have_begun(1)
    works.tasks.pop(1).cancel()
    works.end(ONE, 1)

    assert (await works.have_begun(2))[-1] == (OTHER, 2)
    await works.end_all()
