"""Monitoring: the same questions, beside the request. Whoever called never feels it.

It may be dropped, by a bound or by the end of the process, and then is counted: what was decided
and what was dropped together are all that should have been decided.
"""

import asyncio
from collections.abc import Awaitable, Callable

from tollhouse.base.ids import OrganizationId
from tollhouse.base.shares import ORGANIZATION_SHARE, Shares
from tollhouse.base.tasks import Tasks
from tollhouse.judging.slots import PendingEvaluations, Slots
from tollhouse.observability import metrics
from tollhouse.observability.metrics import DecisionLoss

AT_ONCE_MAX = 32


class Watcher:
    """One per worker."""

    def __init__(
        self, tasks: Tasks, pending: PendingEvaluations, *, waiting_max: int, bytes_max: int
    ) -> None:
        self._tasks = tasks
        self._pending = pending
        self._waiting = Shares(waiting_max)
        self._bytes = Shares(bytes_max)
        self._turns = Slots(
            worker_max=AT_ONCE_MAX, organization_max=AT_ONCE_MAX // ORGANIZATION_SHARE
        )

    def take(
        self,
        organization_id: OrganizationId,
        work: Callable[[], Awaitable[None]],
        *,
        policies: int,
        size_bytes: int,
    ) -> None:
        """Do it later, if there is room. `size_bytes` is about what it keeps in memory."""
        if not self._has_room(organization_id, size_bytes):
            metrics.decisions_dropped(policies, DecisionLoss.NO_ROOM)
            return
        self._pending.begin(organization_id)
        task = self._tasks.start("watch", self._in_turn(organization_id, work))
        task.add_done_callback(
            lambda done: self._ended(done, organization_id, policies, size_bytes)
        )

    def _has_room(self, organization_id: OrganizationId, size_bytes: int) -> bool:
        if not self._pending.has_room(organization_id):
            return False
        if not self._waiting.take(organization_id, 1):
            return False
        if not self._bytes.take(organization_id, size_bytes):
            self._waiting.give_back(organization_id, 1)
            return False
        return True

    async def _in_turn(
        self, organization_id: OrganizationId, work: Callable[[], Awaitable[None]]
    ) -> None:
        async with self._turns.one(organization_id):
            await work()

    def _ended(
        self,
        done: "asyncio.Task[None]",
        organization_id: OrganizationId,
        policies: int,
        size_bytes: int,
    ) -> None:
        self._pending.end(organization_id)
        self._waiting.give_back(organization_id, 1)
        self._bytes.give_back(organization_id, size_bytes)
        if done.cancelled():
            metrics.decisions_dropped(policies, DecisionLoss.STOPPED)
        elif done.exception() is not None:
            metrics.decisions_dropped(policies, DecisionLoss.FAILED)
