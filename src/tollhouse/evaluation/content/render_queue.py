"""The render queue: renders large contents in threads, so that the event loop stays free."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from tollhouse.base.ids import OrganizationId

ResultT = TypeVar("ResultT")

ON_LOOP_BYTES_MAX = 65_536


class RenderQueue:
    """Runs a bounded number of renderings at once: one per organization, organizations in turn.

    The number is small, because threads share the interpreter lock with the event loop.
    """

    def __init__(self, *, at_once_max: int = 1) -> None:
        self._at_once_max = at_once_max
        self._running: set[OrganizationId] = set()
        self._waiting: dict[OrganizationId, deque[asyncio.Future[None]]] = {}

    async def run(
        self, organization_id: OrganizationId, work: Callable[[], ResultT], *, size_bytes: int
    ) -> ResultT:
        """Return the result of the work, which runs in a thread if the content is large.

        A cancelled caller does not stop the thread, whose slot stays used until it ends.
        """
        if size_bytes <= ON_LOOP_BYTES_MAX:
            return work()
        await self._acquire(organization_id)
        made = asyncio.get_running_loop().run_in_executor(None, work)
        made.add_done_callback(partial(self._done, organization_id))
        return await asyncio.shield(made)

    async def _acquire(self, organization_id: OrganizationId) -> None:
        """Wait for this organization's turn, and mark it as running."""
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
        """Start the organizations that have waited longest, up to the bound."""
        for organization_id in tuple(self._waiting):
            if len(self._running) >= self._at_once_max:
                return
            if organization_id not in self._running:
                self._start_one(organization_id)

    def _start_one(self, organization_id: OrganizationId) -> None:
        """Start the next rendering of an organization whose caller still waits."""
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
        """Free the slot, and put the organization behind all others that wait."""
        self._running.discard(organization_id)
        if (turns := self._waiting.pop(organization_id, None)) is not None:
            self._waiting[organization_id] = turns
        self._start_next()

    def _done(self, organization_id: OrganizationId, made: "asyncio.Future[ResultT]") -> None:
        self._release(organization_id)
        if not made.cancelled():
            # Read once, so that the loop does not log an exception that was never retrieved.
            made.exception()
