"""One timer for many waits: it rings when, and only when, somebody has waited too long."""

import asyncio

from tests.support.gateway import TIMEOUT_SECONDS
from tollhouse.backends.connection import Deadline

SOON_SECONDS = 0.02
LATER_SECONDS = 0.06


class Bell:
    """Notes when it is rung."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.rung_at_seconds: list[float] = []
        self.rang = asyncio.Event()
        self.deadline = Deadline(self._ring)

    def _ring(self) -> None:
        self.rung_at_seconds.append(self.loop.time())
        self.rang.set()

    async def heard(self) -> float:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await self.rang.wait()
        return self.rung_at_seconds[-1]

    async def passed(self, until_seconds: float) -> None:
        """Until another timer of the same loop, set for later, was due."""
        due = asyncio.Event()
        self.loop.call_at(until_seconds, due.set)
        await due.wait()


async def test_it_rings_at_the_instant() -> None:
    bell = Bell()
    until_seconds = bell.loop.time() + SOON_SECONDS

    bell.deadline.set(until_seconds)

    assert await bell.heard() >= until_seconds


async def test_a_later_instant_replaces_an_earlier_one() -> None:
    bell = Bell()
    until_seconds = bell.loop.time() + LATER_SECONDS

    bell.deadline.set(bell.loop.time() + SOON_SECONDS)
    bell.deadline.set(until_seconds)

    assert await bell.heard() >= until_seconds
    assert len(bell.rung_at_seconds) == 1


async def test_an_earlier_instant_replaces_a_later_one() -> None:
    bell = Bell()

    bell.deadline.set(bell.loop.time() + TIMEOUT_SECONDS)
    bell.deadline.set(bell.loop.time() + SOON_SECONDS)

    await bell.heard()


async def test_nobody_who_rests_is_rung_for() -> None:
    bell = Bell()
    bell.deadline.set(bell.loop.time() + SOON_SECONDS)
    bell.deadline.suspend()
    await bell.passed(bell.loop.time() + LATER_SECONDS)
    assert bell.rung_at_seconds == []

    bell.deadline.set(bell.loop.time() + SOON_SECONDS)

    await bell.heard()


async def test_a_cancelled_one_never_rings() -> None:
    bell = Bell()
    bell.deadline.set(bell.loop.time() + SOON_SECONDS)

    bell.deadline.cancel()

    await bell.passed(bell.loop.time() + LATER_SECONDS)
    assert bell.rung_at_seconds == []
