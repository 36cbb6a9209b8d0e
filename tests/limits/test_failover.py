"""Redis with Sentinels and as a cluster: masters are killed, halted and moved under traffic."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from redis.crc import key_slot

from tests.identity.waiting import until
from tests.limits.gates import Caller, Gate, at_once, gate, requests
from tests.limits.test_redis_lost import is_alone
from tests.support.redis_groups import (
    Group,
    Node,
    cluster_command,
    running_cluster,
    running_sentinels,
)
from tollhouse.limits.errors import ConcurrencyLimited, Limited
from tollhouse.limits.limiter import CHECK_EVERY_SECONDS

WORKERS = 2
ANSWER_SECONDS = 1.0
RETURN_SECONDS_MAX = 5.0
"""What the documentation promises, from the promotion of the new master on."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("redis")


@pytest.fixture(scope="module")
def watched(directory: Path) -> Iterator[Group]:
    with running_sentinels(directory, replicas=3) as group:
        yield group


@pytest.fixture
def sentinels(watched: Group) -> Group:
    """A master with a replica; each test may use up one of the servers."""
    watched.await_replica()
    return watched


@pytest.fixture(scope="module")
def cluster(directory: Path) -> Iterator[Group]:
    with running_cluster(directory) as group:
        yield group


class Worker:
    """A limiter that checks Redis as the application does, and callers without a pause."""

    def __init__(self, door: Gate, caller: Caller) -> None:
        self.door = door
        self.caller = caller
        self.granted = 0
        self.refused = 0
        self.checking = asyncio.create_task(self._check())
        self.calling = asyncio.create_task(self._call())

    async def _check(self) -> None:
        while True:
            await self.door.limiter.check_redis()
            await asyncio.sleep(CHECK_EVERY_SECONDS)

    async def _call(self) -> None:
        while True:
            try:
                entered = await self.door.limiter.enter(self.caller.request())
            except Limited:
                self.refused += 1
            else:
                self.granted += 1
                try:
                    await asyncio.sleep(0)
                finally:
                    entered.leave()
            await asyncio.sleep(0.002)

    async def stop(self) -> None:
        for task in (self.checking, self.calling):
            assert not task.done(), "no request fails"
            task.cancel()
        await asyncio.gather(self.checking, self.calling, return_exceptions=True)


@asynccontextmanager
async def traffic(url: str, caller: Caller) -> AsyncGenerator[list[Worker]]:
    """Workers that count together, each with one caller of the same organization."""
    async with AsyncExitStack() as opened:
        workers: list[Worker] = []
        for _ in range(WORKERS):
            door = await opened.enter_async_context(gate(url, answer_seconds=ANSWER_SECONDS))
            await door.limiter.renew_leases()
            workers.append(Worker(door, caller))
        yield workers
        for worker in workers:
            await worker.stop()
            await worker.door.limiter.renew_leases()


async def turned(*, alone: bool) -> float:
    async def is_so() -> bool:
        return is_alone() == alone

    await until(is_so)
    return time.monotonic()


async def promoted(group: Group, lost: Node, key: str = "") -> tuple[Node, float]:
    found = await asyncio.to_thread(group.await_failover, lost, key)
    return found, time.monotonic()


def organization_key(caller: Caller) -> str:
    return f"tollhouse:{{{caller.organization_id}}}:requests:{caller.organization_id}"


async def assert_counted_together(url: str) -> None:
    """Another worker is refused what this one holds."""
    caller = Caller(organization=at_once(1))
    async with gate(url) as one, gate(url) as other:
        for door in (one, other):
            await door.limiter.renew_leases()
        held = await one.limiter.enter(caller.request())
        with pytest.raises(ConcurrencyLimited):
            await other.limiter.enter(caller.request())
        held.leave()


@pytest.mark.clock
async def test_a_killed_master_of_sentinels_is_replaced_and_used(sentinels: Group) -> None:
    limit = 400
    caller = Caller(organization=requests(limit), key=at_once(50))
    async with traffic(sentinels.url, caller) as workers:
        await until(lambda: _refused(workers))
        before, lost = sum(worker.granted for worker in workers), sentinels.master()
        began = time.monotonic()
        lost.kill()
        await turned(alone=True)
        found, promoted_at = await promoted(sentinels, lost)
        back_at = await turned(alone=False)
        after = sum(worker.granted for worker in workers)
        seconds = time.monotonic() - began
        assert found.ask("DBSIZE") > 0

    # Alone, each worker grants the limit once; Redis goes on to refill its bucket.
    assert before < after <= before + WORKERS * limit + seconds * limit / 60 + limit
    assert back_at - promoted_at < RETURN_SECONDS_MAX
    await assert_counted_together(sentinels.url)


async def _refused(workers: list[Worker]) -> bool:
    return all(worker.refused for worker in workers)


@pytest.mark.nightly
@pytest.mark.clock
async def test_a_halted_master_of_sentinels_does_not_get_its_callers_back(
    sentinels: Group,
) -> None:
    caller = Caller(organization=at_once(8))
    lost = sentinels.master()
    async with traffic(sentinels.url, caller) as workers:
        held = await workers[0].door.limiter.enter(caller.request())
        lost.pause()
        await turned(alone=True)
        _, promoted_at = await promoted(sentinels, lost)
        back_at = await turned(alone=False)
        lost.resume()
        await assert_counted_together(sentinels.url)
        held.leave()

    assert sentinels.master().slots_taken() == 0
    assert back_at - promoted_at < RETURN_SECONDS_MAX


async def test_workers_leave_a_master_that_still_answers_but_is_not_one_any_more(
    sentinels: Group,
) -> None:
    """The order of an operator, without any loss."""
    caller = Caller(organization=at_once(2))
    async with gate(sentinels.url) as door:
        await door.limiter.renew_leases()
        held = await door.limiter.enter(caller.request())
        before = sentinels.master()
        await asyncio.to_thread(sentinels.sentinels[0].ask, "SENTINEL", "FAILOVER", "tollhouse")
        await promoted(sentinels, before)

        async def is_entered() -> bool:
            await door.limiter.renew_leases()
            return sentinels.master().slots_taken() == 1

        await until(is_entered)
        held.leave()


async def test_a_sentinel_that_is_gone_or_halted_does_not_matter(sentinels: Group) -> None:
    sentinels.sentinels[0].kill()
    sentinels.sentinels[1].pause()

    await assert_counted_together(sentinels.url)

    sentinels.sentinels[1].resume()


@pytest.mark.nightly
@pytest.mark.clock
async def test_a_killed_master_of_a_cluster_concerns_its_organizations_only(
    cluster: Group,
) -> None:
    caller = Caller(organization=requests(10_000), key=at_once(50))
    key = organization_key(caller)
    lost = cluster.master(key)
    neighbour = Caller(organization=at_once(1))
    while cluster.master(organization_key(neighbour)) is lost:
        neighbour = Caller(organization=at_once(1))
    async with traffic(cluster.url, caller) as workers:
        one, other = (worker.door.limiter for worker in workers)
        await one.enter(neighbour.request())
        lost.kill()
        await turned(alone=True)
        with pytest.raises(ConcurrencyLimited):
            await other.enter(neighbour.request())
        found, promoted_at = await promoted(cluster, lost, key)
        back_at = await turned(alone=False)
        served = [worker.granted for worker in workers]
        await until(lambda: _granted_more(workers, served))
        assert found.ask("EXISTS", key) == 1

    assert back_at - promoted_at < RETURN_SECONDS_MAX
    lost.start()


async def _granted_more(workers: list[Worker], before: list[int]) -> bool:
    return all(worker.granted > count for worker, count in zip(workers, before, strict=True))


async def test_hash_slots_of_a_cluster_move_under_traffic(cluster: Group) -> None:
    caller = Caller(organization=at_once(8), key=requests(10**6))
    key = organization_key(caller)
    source = cluster.master(key)
    others = [node for node in cluster.servers if node.ask("ROLE")[0] == "master"]
    target = next(node for node in others if node is not source)
    async with traffic(cluster.url, caller) as workers:
        held = await workers[0].door.limiter.enter(caller.request())
        await asyncio.to_thread(move_slot, cluster, key, source, target)
        assert cluster.master(key) is target

        async def is_counted_there() -> bool:
            return target.ask("EXISTS", key.replace("requests", "concurrent")) == 1

        await until(is_counted_there)
        held.leave()

    assert not is_alone()
    assert target.slots_taken() == 0


def move_slot(cluster: Group, key: str, source: Node, target: Node) -> None:
    """Move one slot with its keys, as `redis-cli --cluster reshard` does for many."""
    slot = str(key_slot(key.encode()))
    source_id, target_id = source.ask("CLUSTER", "MYID"), target.ask("CLUSTER", "MYID")
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
    cluster_command(cluster.servers, "fix", source.address)
    if cluster.master(key) is source:
        arguments = ["--cluster-from", source_id, "--cluster-to", target_id]
        cluster_command(
            cluster.servers, "reshard", source.address, *arguments, "--cluster-slots", "1"
        )
