"""Monitoring has room for everybody, and who asks for too much of it is the one that is dropped."""

import asyncio

from tollhouse.base.ids import OrganizationId, time_ordered_uuid
from tollhouse.base.tasks import Tasks
from tollhouse.evaluation.judge.quotas import PendingEvaluations
from tollhouse.evaluation.monitoring_queue import MonitoringQueue


async def test_one_organization_does_not_fill_the_room() -> None:
    greedy, other = (OrganizationId(time_ordered_uuid()) for _ in range(2))
    tasks = Tasks()
    monitoring_queue = MonitoringQueue(
        tasks, PendingEvaluations(100), waiting_max=8, bytes_max=8_000
    )
    may_go_on = asyncio.Event()
    looked_at: list[OrganizationId] = []

    async def look(organization_id: OrganizationId) -> None:
        await may_go_on.wait()
        looked_at.append(organization_id)

    def take(organization_id: OrganizationId, size_bytes: int) -> None:
        monitoring_queue.submit(
            organization_id, lambda: look(organization_id), policies=1, size_bytes=size_bytes
        )

    for _ in range(8):
        take(greedy, 10)
    take(other, 2_001)
    take(other, 2_000)
    may_go_on.set()
    await tasks.drain(deadline_seconds=30)

    assert looked_at == [greedy, greedy, other]


async def test_one_organization_does_not_take_all_turns() -> None:
    greedy, other = (OrganizationId(time_ordered_uuid()) for _ in range(2))
    tasks = Tasks()
    monitoring_queue = MonitoringQueue(
        tasks, PendingEvaluations(1_000), waiting_max=1_000, bytes_max=1_000
    )
    may_go_on, has_looked = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        await may_go_on.wait()

    async def look() -> None:
        has_looked.set()

    for _ in range(200):
        monitoring_queue.submit(greedy, wait, policies=1, size_bytes=1)
    monitoring_queue.submit(other, look, policies=1, size_bytes=1)

    async with asyncio.timeout(30):
        await has_looked.wait()
    may_go_on.set()
    await tasks.drain(deadline_seconds=30)
