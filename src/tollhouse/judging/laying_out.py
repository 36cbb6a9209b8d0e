"""Laying contents out without stopping whoever else is served by the same process."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from tollhouse.base.ids import OrganizationId

MadeT = TypeVar("MadeT")

ON_LOOP_BYTES_MAX = 65_536


class Desk:
    """A bounded number of contents at once, of each organization one, organizations in turn.

    Threads take turns with the event loop, and it must get most: so there are few.
    """

    def __init__(self, *, at_once_max: int = 1) -> None:
        self._at_once_max = at_once_max
        self._running: set[OrganizationId] = set()
        self._waiting: dict[OrganizationId, deque[asyncio.Future[None]]] = {}

    async def make(
        self, organization_id: OrganizationId, work: Callable[[], MadeT], *, size_bytes: int
    ) -> MadeT:
        """Beside the event loop if there is much to do; whoever leaves does not free the desk."""
        if size_bytes <= ON_LOOP_BYTES_MAX:
            return work()
        await self._turn(organization_id)
        made = asyncio.get_running_loop().run_in_executor(None, work)
        made.add_done_callback(partial(self._done, organization_id))
        return await asyncio.shield(made)

    async def _turn(self, organization_id: OrganizationId) -> None:
        """Wait until it is this organization's turn, and mark it as running."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(organization_id, deque()).append(turn)
        self._start_next()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._release(organization_id)
            raise

    def _start_next(self) -> None:
        """Give free threads to the organizations that have waited longest for their turn."""
        for organization_id in tuple(self._waiting):
            if len(self._running) >= self._at_once_max:
                return
            if organization_id not in self._running:
                self._start_one_of(organization_id)

    def _start_one_of(self, organization_id: OrganizationId) -> None:
        """Start the next content of an organization that somebody still waits for."""
        turns = self._waiting[organization_id]
        while turns:
            turn = turns.popleft()
            if not turn.done():
                self._running.add(organization_id)
                turn.set_result(None)
                break
        if not turns:
            del self._waiting[organization_id]

    def _release(self, organization_id: OrganizationId) -> None:
        """Free the thread; an organization that has just had it stands behind all that wait."""
        self._running.discard(organization_id)
        if (turns := self._waiting.pop(organization_id, None)) is not None:
            self._waiting[organization_id] = turns
        self._start_next()

    def _done(self, organization_id: OrganizationId, made: "asyncio.Future[MadeT]") -> None:
        self._release(organization_id)
        if not made.cancelled():
            # Looked at once, so that the loop does not complain of one that nobody awaits.
            made.exception()
