"""Redis killed, halted, filled, flushed and restarted: nobody fails, and limits come back."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.identity.waiting import until
from tests.limits.gates import Caller, Gate, at_once, gate, requests, tokens
from tests.support import seeds
from tests.support.redis_server import RedisServer, running_redis
from tollhouse.limits.errors import ConcurrencyLimited, Limited, RequestsLimited
from tollhouse.observability import registry

IMPATIENT_SECONDS = 1.0
"""Where somebody who does not answer is waited for."""
LOOP_TURNS = 5
"""Enough to hear of a connection that has ended already."""


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    """One that nobody else needs alive."""
    with running_redis() as server:
        yield server


@pytest.fixture
async def door(redis_server: RedisServer) -> AsyncIterator[Gate]:
    async with gate(redis_server.url) as opened:
        yield opened


def is_alone() -> bool:
    """Whether the metric says that this worker counts by itself."""
    return b"\ntollhouse_limits_fallback 1.0\n" in registry.exposition(None)


def lines(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """What the log says of limits."""
    return [record for record in caplog.records if record.name == "tollhouse.limits"]


def events(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line.getMessage() for line in lines(caplog)]


def slots_taken(server: RedisServer) -> int:
    with server.client() as client:
        return sum(client.zcard(key) for key in client.scan_iter("*:concurrent:*"))


async def returned(door: Gate) -> None:
    """What the worker does by itself every few seconds, until it has succeeded."""

    async def is_back() -> bool:
        await door.limiter.renew_leases()
        return not is_alone()

    await until(is_back)


async def test_a_killed_redis_is_noticed_once_and_its_return_once(
    door: Gate, redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caller = Caller(key=requests(2))
    await door.limiter.enter(caller.request())
    redis_server.kill()

    for _ in range(2):
        await door.limiter.enter(caller.request())
    with pytest.raises(RequestsLimited):
        await door.limiter.enter(caller.request())
    await door.limiter.renew_leases()

    assert is_alone()
    assert events(caplog) == ["limits_fallback_began"]
    assert "Error" in lines(caplog)[0].__dict__["reason"]

    redis_server.start()
    await returned(door)
    await door.limiter.enter(caller.request())

    assert events(caplog) == ["limits_fallback_began", "limits_fallback_ended"]
    with redis_server.client() as client:
        assert len(list(client.scan_iter("*:requests:*"))) == 1


async def test_what_runs_is_entered_into_a_redis_that_has_forgotten_it(
    door: Gate, redis_server: RedisServer
) -> None:
    """Granted by Redis or while it was gone; another worker must not exceed the limit."""
    caller = Caller(organization=at_once(3))
    granted = await door.limiter.enter(caller.request())
    redis_server.kill()
    granted_alone = await door.limiter.enter(caller.request())
    redis_server.start()
    await returned(door)

    async with gate(redis_server.url) as other:
        await other.limiter.enter(caller.request())
        with pytest.raises(ConcurrencyLimited):
            await other.limiter.enter(caller.request())
    assert slots_taken(redis_server) == 3
    for entered in (granted, granted_alone):
        entered.leave()
    await door.settle()

    assert slots_taken(redis_server) == 1


async def test_alone_the_worker_counts_what_it_already_runs(
    door: Gate, redis_server: RedisServer
) -> None:
    caller = Caller(organization=at_once(2))
    first = await door.limiter.enter(caller.request())
    redis_server.kill()
    await door.limiter.enter(caller.request())

    with pytest.raises(ConcurrencyLimited):
        await door.limiter.enter(caller.request())
    first.leave()
    await door.limiter.enter(caller.request())

    redis_server.start()
    await returned(door)


async def test_a_redis_that_does_not_answer_in_time_delays_once(
    redis_server: RedisServer,
) -> None:
    caller = Caller(organization=requests(1000))
    async with gate(redis_server.url, answer_seconds=IMPATIENT_SECONDS) as door:
        redis_server.pause()
        await asyncio.gather(*(door.limiter.enter(caller.request()) for _ in range(300)))
        assert is_alone()

        redis_server.resume()
        await returned(door)
        await door.limiter.enter(caller.request())


async def test_a_lost_redis_is_not_asked_before_it_was_seen_to_be_back(
    redis_server: RedisServer,
) -> None:
    caller = Caller(organization=requests(1000))
    async with gate(redis_server.url, answer_seconds=IMPATIENT_SECONDS) as door:
        redis_server.pause()
        await door.limiter.enter(caller.request())
        assert is_alone()
        redis_server.resume()
        with redis_server.client() as client:
            client.flushall()

            for _ in range(3):
                await door.limiter.enter(caller.request())

            assert client.dbsize() == 0
            await returned(door)
            await door.limiter.enter(caller.request())
            assert client.dbsize() > 0


async def test_a_full_redis_is_a_lost_one_until_it_takes_writes(
    door: Gate, redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caller = Caller(key=requests(1000))
    with redis_server.client() as client:
        client.config_set("maxmemory", 1)
        await door.limiter.enter(caller.request())
        await door.limiter.renew_leases()
        await door.limiter.renew_leases()
        alone = is_alone()
        client.config_set("maxmemory", 0)
    await returned(door)

    assert alone
    assert events(caplog) == ["limits_fallback_began", "limits_fallback_ended"]
    assert "OOM" in lines(caplog)[0].__dict__["reason"]


async def test_a_flushed_redis_learns_again_what_runs(
    door: Gate, redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caller = Caller(organization=at_once(1))
    entered = await door.limiter.enter(caller.request())
    with redis_server.client() as client:
        client.flushall()
        client.script_flush()

    await door.limiter.renew_leases()
    with pytest.raises(ConcurrencyLimited):
        await door.limiter.enter(caller.request())
    entered.leave()
    await door.limiter.enter(caller.request())

    assert events(caplog) == []


async def test_a_redis_that_forgot_the_scripts_still_decides(
    door: Gate, redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caller = Caller(organization=at_once(1))
    entered = await door.limiter.enter(caller.request())
    with redis_server.client() as client:
        client.script_flush()

    with pytest.raises(ConcurrencyLimited):
        await door.limiter.enter(caller.request())

    assert entered.is_held
    assert events(caplog) == []


async def test_a_redis_that_was_restarted_while_nobody_asked_is_not_lost(
    door: Gate, redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caller = Caller(key=tokens(1000))
    entered = await door.limiter.enter(caller.request())
    await entered.take_tokens(1)
    redis_server.kill()
    redis_server.start()

    for _ in range(LOOP_TURNS):
        await asyncio.sleep(0)
    await entered.take_tokens(1)

    assert events(caplog) == []


async def test_corrections_and_departures_are_lost_with_redis_and_fail_nobody(
    door: Gate, redis_server: RedisServer
) -> None:
    caller = Caller(organization=at_once(1), key=tokens(1000))
    entered = await door.limiter.enter(caller.request())
    await entered.take_tokens(10)
    redis_server.kill()

    entered.leave(used_tokens=5)
    await door.settle()
    again = await door.limiter.enter(caller.request())
    await again.take_tokens(10)
    redis_server.start()
    await returned(door)
    again.leave(used_tokens=5)
    await door.settle()

    assert slots_taken(redis_server) == 0


async def test_nobody_fails_and_no_slot_is_left_while_redis_comes_and_goes(
    redis_server: RedisServer,
) -> None:
    caller = Caller(organization=at_once(8), key=tokens(10**9))
    chance = seeds.chance()
    is_over = asyncio.Event()
    served = 0

    async def call_again_and_again() -> None:
        nonlocal served
        while not is_over.is_set():
            try:
                entered = await door.limiter.enter(caller.request())
            except Limited:
                await asyncio.sleep(0)
                continue
            try:
                await entered.take_tokens(chance.randrange(1000))
                await asyncio.sleep(0)
                entered.leave(used_tokens=chance.randrange(1000))
            finally:
                entered.leave()
            served += 1

    async with gate(redis_server.url, answer_seconds=IMPATIENT_SECONDS) as door:
        callers = [asyncio.create_task(call_again_and_again()) for _ in range(16)]
        for turn in range(4):
            await asyncio.sleep(chance.random() / 20)
            redis_server.kill()
            await asyncio.sleep(chance.random() / 20)
            redis_server.start()
            if turn % 2:
                await returned(door)
        is_over.set()
        await asyncio.gather(*callers)
        await returned(door)
        await door.settle()

    assert served > 0
    assert slots_taken(redis_server) == 0
