"""Turns for large bodies: one of each organization at a time, and a pause after costly ones.

The pause is proportional to the time that parsing took, or to the time for which the request then
occupied the event loop if that gives a longer pause. So the costly bodies of one organization use
at most about a sixth of a worker's time, and those of all organizations less than half.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from tollhouse.base.ids import OrganizationId

CHEAP_BYTES_MAX: Final = 2 * 1024 * 1024
CHEAP_ELEMENTS_MAX: Final = 16_384
"""A body within both bounds is cheap: no other body waits after it."""
ORGANIZATION_PAUSE: Final = 12
WORKER_PAUSE: Final = 4
"""The pauses, as multiples of the time that parsing took.

The work after parsing on the event loop (checks, bounds, encoding) mostly takes up to twice as long
as parsing, which these pauses cover.
"""
PREPARATION_ORGANIZATION_PAUSE: Final = 6
PREPARATION_WORKER_PAUSE: Final = 2
"""The minimum pauses, as multiples of the time that the work after parsing took."""
CHEAP_PREPARATION_SECONDS: Final = 0.004
"""A cheap body causes no pause if the work that follows took at most this long."""


def is_costly(*, size_bytes: int, elements: int) -> bool:
    """Return whether parsing a body takes long enough to delay other organizations."""
    return size_bytes > CHEAP_BYTES_MAX or elements > CHEAP_ELEMENTS_MAX


@dataclass(slots=True)
class _Turns:
    """The turns of one organization, or of the worker."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    next_at_seconds: float = 0.0
    users: int = 0

    async def wait(self) -> None:
        """Wait until the pause after the previous body is over."""
        loop = asyncio.get_running_loop()
        # The pause may grow meanwhile: the work after parsing is charged later.
        while (left_seconds := self.next_at_seconds - loop.time()) > 0:  # noqa: ASYNC110 - a time, not an event
            await asyncio.sleep(left_seconds)

    def pause(self, seconds: float) -> None:
        """Pause for `seconds` from now, unless a longer pause is running."""
        ends_at_seconds = asyncio.get_running_loop().time() + seconds
        self.next_at_seconds = max(self.next_at_seconds, ends_at_seconds)


class ParsingTurns:
    """One per worker."""

    def __init__(self) -> None:
        self._worker = _Turns()
        self._organizations: dict[OrganizationId, _Turns] = {}

    @asynccontextmanager
    async def one(self, organization_id: OrganizationId) -> AsyncGenerator[None]:
        """Wait for the organization's turn, in the order of arrival."""
        turns = self._organizations.setdefault(organization_id, _Turns())
        turns.users += 1
        try:
            async with turns.lock:
                await turns.wait()
                yield
        finally:
            turns.users -= 1
            self._forget_after_pause(organization_id)

    @asynccontextmanager
    async def costly(self, organization_id: OrganizationId) -> AsyncGenerator[None]:
        """Within `one`: wait for the worker's turn too, and pause both afterwards."""
        loop = asyncio.get_running_loop()
        async with self._worker.lock:
            await self._worker.wait()
            began_seconds = loop.time()
            try:
                yield
            finally:
                taken_seconds = loop.time() - began_seconds
                self._worker.pause(WORKER_PAUSE * taken_seconds)
                self._organizations[organization_id].pause(ORGANIZATION_PAUSE * taken_seconds)

    def charge(
        self, organization_id: OrganizationId, busy_seconds: float, *, is_costly: bool
    ) -> None:
        """Pause at least in proportion to the time that preparing the request took.

        Only after a costly body do other organizations pause too.
        """
        if busy_seconds <= CHEAP_PREPARATION_SECONDS and not is_costly:
            return
        turns = self._organizations.setdefault(organization_id, _Turns())
        turns.pause(PREPARATION_ORGANIZATION_PAUSE * busy_seconds)
        self._forget_after_pause(organization_id)
        if is_costly:
            self._worker.pause(PREPARATION_WORKER_PAUSE * busy_seconds)

    def _forget_after_pause(self, organization_id: OrganizationId) -> None:
        at_seconds = self._organizations[organization_id].next_at_seconds
        asyncio.get_running_loop().call_at(at_seconds, self._forget, organization_id)

    def _forget(self, organization_id: OrganizationId) -> None:
        turns = self._organizations.get(organization_id)
        now_seconds = asyncio.get_running_loop().time()
        if turns is not None and not turns.users and turns.next_at_seconds <= now_seconds:
            del self._organizations[organization_id]
