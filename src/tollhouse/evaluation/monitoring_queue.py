"""The monitoring queue: evaluations that run beside the request, so that callers never wait.

An evaluation is dropped if a bound is reached or the process stops. Every dropped decision is
counted, so that decided and dropped ones together are all that were due.
"""

import asyncio
from collections.abc import Awaitable, Callable

from tollhouse.base.ids import OrganizationId
from tollhouse.base.quotas import ORGANIZATION_SHARE, WorkerQuota
from tollhouse.base.tasks import Tasks
from tollhouse.evaluation.judge.quotas import FairSemaphore, PendingEvaluations
from tollhouse.observability import model_metrics, policy_metrics
from tollhouse.observability.policy_metrics import DecisionLoss

AT_ONCE_MAX = 32


class MonitoringQueue:
    """Runs evaluations in tasks, within bounds of number and of bytes."""

    def __init__(
        self, tasks: Tasks, pending: PendingEvaluations, *, waiting_max: int, bytes_max: int
    ) -> None:
        self._tasks = tasks
        self._pending = pending
        self._waiting = WorkerQuota(waiting_max)
        self._bytes = WorkerQuota(bytes_max)
        model_metrics.read_queue_length("monitoring", lambda: self._waiting.used)
        self._semaphore = FairSemaphore(
            worker_max=AT_ONCE_MAX, organization_max=AT_ONCE_MAX // ORGANIZATION_SHARE
        )

    def submit(
        self,
        organization_id: OrganizationId,
        work: Callable[[], Awaitable[None]],
        *,
        policies: int,
        size_bytes: int,
    ) -> None:
        """Start the work in a task, or count its policies as dropped if a bound is reached.

        `size_bytes` is about what the work keeps in memory.
        """
        if not self._acquire(organization_id, size_bytes):
            policy_metrics.decisions_dropped(policies, DecisionLoss.NO_ROOM)
            return
        self._pending.begin(organization_id)
        task = self._tasks.start("monitor", self._run(organization_id, work))
        task.add_done_callback(
            lambda done: self._ended(done, organization_id, policies, size_bytes)
        )

    def _acquire(self, organization_id: OrganizationId, size_bytes: int) -> bool:
        if self._pending.is_full(organization_id):
            return False
        if not self._waiting.acquire(organization_id, 1):
            return False
        if not self._bytes.acquire(organization_id, size_bytes):
            self._waiting.release(organization_id, 1)
            return False
        return True

    async def _run(
        self, organization_id: OrganizationId, work: Callable[[], Awaitable[None]]
    ) -> None:
        async with self._semaphore.slot(organization_id):
            await work()

    def _ended(
        self,
        done: "asyncio.Task[None]",
        organization_id: OrganizationId,
        policies: int,
        size_bytes: int,
    ) -> None:
        self._pending.end(organization_id)
        self._waiting.release(organization_id, 1)
        self._bytes.release(organization_id, size_bytes)
        if done.cancelled():
            policy_metrics.decisions_dropped(policies, DecisionLoss.STOPPED)
        elif done.exception() is not None:
            policy_metrics.decisions_dropped(policies, DecisionLoss.FAILED)
