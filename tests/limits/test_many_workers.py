"""Many workers at once: the limit is never exceeded, and no slot is lost with a worker."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.identity.waiting import until
from tests.limits.gates import Caller, at_once, gate
from tests.limits.workers import INSIDE, come_and_go, stay
from tests.storage.processes import ended, next_word, running
from tests.support.redis_server import RedisServer
from tollhouse.limits.errors import ConcurrencyLimited

PROCESSES = 3
CALLERS = 8
VISITS = 20
LIMIT = 5
LEASE_SECONDS = 2.0


async def test_processes_and_tasks_at_once_never_exceed_the_limit_and_lose_no_slot(
    redis_server: RedisServer,
) -> None:
    caller = Caller(organization=at_once(LIMIT), project=at_once(LIMIT + 1))
    async with AsyncExitStack() as stack:
        workers = [
            await stack.enter_async_context(
                running(come_and_go, redis_server.url, caller, CALLERS, VISITS)
            )
            for _ in range(PROCESSES)
        ]
        most = await asyncio.gather(*(next_word(line) for _, line in workers))

    assert max(int(str(found)) for found in most) <= LIMIT
    with redis_server.client() as client:
        assert client.get(INSIDE) == "0"
        assert list(client.scan_iter("*:concurrent:*")) == []


@pytest.mark.clock
async def test_a_killed_workers_slots_come_back_with_their_lease(
    redis_server: RedisServer,
) -> None:
    caller = Caller(organization=at_once(2), key=at_once(2))
    async with gate(redis_server.url) as door:
        async with running(stay, redis_server.url, caller, 2, LEASE_SECONDS) as (worker, line):
            assert await next_word(line) == "inside"
            with pytest.raises(ConcurrencyLimited):
                await door.limiter.enter(caller.request())
            worker.kill()
            await ended(worker)

        async def is_let_in() -> bool:
            try:
                await door.limiter.enter(caller.request())
            except ConcurrencyLimited:
                return False
            return True

        await until(is_let_in)
        await until(is_let_in)


async def test_a_worker_keeps_its_slots_beyond_their_lease_by_tending(
    redis_server: RedisServer,
) -> None:
    """Many slots of one place and few of many: every lease is longer after it than before."""
    crowd = Caller(organization=at_once(3000))
    loners = [Caller(organization=at_once(1)) for _ in range(300)]
    async with gate(redis_server.url) as door:
        await asyncio.gather(
            *(door.limiter.enter(crowd.request()) for _ in range(2500)),
            *(door.limiter.enter(loner.request()) for loner in loners),
        )
        before = leases(redis_server)
        await door.limiter.renew_leases()
        after = leases(redis_server)

    assert len(before) == 2800
    assert before.keys() == after.keys()
    assert all(after[member] > before[member] for member in before)


def leases(server: RedisServer) -> dict[str, float]:
    """When the lease of each request ends."""
    with server.client() as client:
        return {
            member: expires
            for key in client.scan_iter("*:concurrent:*")
            for member, expires in client.zrange(key, 0, -1, withscores=True)
        }
