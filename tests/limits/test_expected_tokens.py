"""Tokens that are taken with the entry: the same decisions and headers as in a call of their own.

What is expected is taken only where it leaves at least half of each bucket, and corrected as soon
as the exact number is known.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.identity.waiting import until
from tests.limits.gates import Caller, Gate, at_once, gate, requests, tokens
from tests.support.redis_server import RedisServer
from tollhouse.base.traffic import TrafficLimits
from tollhouse.contract.bounds import OUTPUT_TOKENS_DEFAULT
from tollhouse.limits import commands
from tollhouse.limits.errors import ConcurrencyLimited, Limited, RequestsLimited, TokensLimited
from tollhouse.limits.limiter import Permit
from tollhouse.limits.rules import Headers

AMPLE = 1_000_000
PROMPT = 100
SCRIPTS = {commands.COUNT.digest: "count", commands.LEAVE.digest: "leave"}


@pytest.fixture
async def door(redis_server: RedisServer) -> AsyncIterator[Gate]:
    """Connected, with its scripts loaded."""
    async with gate(redis_server.url) as opened:
        (await opened.limiter.enter(Caller(key=at_once(1)).request())).leave()
        await opened.settle()
        with redis_server.client() as client:
            client.config_set("slowlog-max-len", 1000, "slowlog-log-slower-than", 0)
            client.slowlog_reset()
        yield opened


def calls(server: RedisServer) -> list[str]:
    """The scripts that Redis ran, in their order."""
    with server.client() as client:
        log = [entry["command"].decode().split() for entry in reversed(client.slowlog_get(1000))]
    return [SCRIPTS[words[1]] for words in log if words[0] == "EVALSHA"]


async def entered(door: Gate, caller: Caller, declared: int | None = PROMPT) -> Permit:
    return await door.limiter.enter(caller.request(declared))


async def test_a_plain_request_waits_for_redis_once(door: Gate, redis_server: RedisServer) -> None:
    caller = Caller(
        key=TrafficLimits(
            requests_per_minute=AMPLE, tokens_per_minute=AMPLE, concurrent_requests=10
        )
    )
    permit = await entered(door, caller)

    redis_server.pause()
    await permit.take_tokens(PROMPT + 200)
    permit.leave(used_tokens=50)
    redis_server.resume()
    await door.settle()

    assert calls(redis_server) == ["count", "leave", "leave"]
    assert dict(permit.headers)["x-ratelimit-remaining-tokens"] == str(AMPLE - PROMPT - 200)


@pytest.mark.parametrize(
    ("limit", "declared", "needed"),
    [
        (2 * (PROMPT + OUTPUT_TOKENS_DEFAULT) - 248, PROMPT, 10),
        (AMPLE, PROMPT, PROMPT + OUTPUT_TOKENS_DEFAULT + 1),
        (AMPLE, None, 10),
    ],
    ids=["the limit is near", "more than expected", "no declared size"],
)
async def test_tokens_take_a_call_of_their_own(
    door: Gate, redis_server: RedisServer, limit: int, declared: int | None, needed: int
) -> None:
    permit = await entered(door, Caller(key=tokens(limit)), declared)

    redis_server.pause()
    taking = asyncio.create_task(permit.take_tokens(needed))
    await asyncio.wait([taking], timeout=0.1)
    is_waiting = not taking.done()
    redis_server.resume()
    await taking

    assert is_waiting
    assert calls(redis_server)[-1] == "count"
    assert dict(permit.headers)["x-ratelimit-remaining-tokens"] == str(limit - needed)


async def test_half_of_a_bucket_may_be_expected(door: Gate, redis_server: RedisServer) -> None:
    permit = await entered(door, Caller(key=tokens(2 * (PROMPT + OUTPUT_TOKENS_DEFAULT))))
    await permit.take_tokens(10)
    permit.leave()
    await door.settle()

    assert calls(redis_server) == ["count", "leave"]


async def test_a_key_that_needs_more_is_expected_to_need_it_again(
    door: Gate, redis_server: RedisServer
) -> None:
    caller = Caller(key=tokens(AMPLE))
    for _ in range(3):
        permit = await entered(door, caller)
        await permit.take_tokens(PROMPT + 5_000)
        permit.leave()
    await door.settle()

    # The first gives back what was expected, and takes the exact number.
    assert calls(redis_server) == ["count", "leave", "count", "count", "count"]


async def test_a_request_that_ends_before_its_tokens_are_known_takes_none(
    door: Gate, redis_server: RedisServer
) -> None:
    (await entered(door, Caller(key=tokens(AMPLE)))).leave(used_tokens=0)
    await door.settle()

    with redis_server.client() as client:
        assert list(client.scan_iter("*:tokens:*")) == []


async def test_a_request_leaves_before_the_next_of_its_worker_enters(
    door: Gate, redis_server: RedisServer
) -> None:
    caller = Caller(key=at_once(1))
    for _ in range(20):
        (await entered(door, caller)).leave()
    await door.settle()

    assert calls(redis_server) == ["count", "leave"] * 20


async def test_a_slot_is_soon_free_for_other_workers(door: Gate, redis_server: RedisServer) -> None:
    caller = Caller(key=at_once(1))
    (await entered(door, caller)).leave()

    async with gate(redis_server.url) as other:

        async def is_let_in() -> bool:
            try:
                await entered(other, caller)
            except ConcurrencyLimited:
                return False
            return True

        await until(is_let_in)


async def test_what_was_left_is_told_to_redis_before_the_worker_ends(
    redis_server: RedisServer,
) -> None:
    async with gate(redis_server.url) as door:
        permit = await entered(door, Caller(key=at_once(1)))
        permit.leave()
        await door.limiter.close()

        with redis_server.client() as client:
            assert client.dbsize() == 0


async def test_only_tokens_without_a_declared_size_need_no_call_to_enter(
    door: Gate, redis_server: RedisServer
) -> None:
    await entered(door, Caller(key=tokens(AMPLE)), declared=None)

    assert calls(redis_server) == []


async def test_a_request_over_its_limit_takes_no_tokens(
    door: Gate, redis_server: RedisServer
) -> None:
    caller = Caller(organization=tokens(AMPLE), key=requests(1))
    (await entered(door, caller)).leave(used_tokens=0)
    with pytest.raises(RequestsLimited):
        await entered(door, caller)
    await door.settle()

    with redis_server.client() as client:
        assert list(client.scan_iter("*:tokens:*")) == []


@dataclass(frozen=True)
class Visit:
    """A request: what it declares, needs and uses, when it leaves, and how long it is until."""

    declared: int
    needed: int
    used: int | None
    leaves_at: int
    pause_us: int
    has_tokens: bool


visits = st.builds(
    Visit,
    declared=st.integers(0, 3_000),
    needed=st.one_of(st.integers(0, 4_000), st.integers(0, 200_000)),
    used=st.one_of(st.none(), st.integers(0, 10_000)),
    leaves_at=st.integers(0, 3),
    pause_us=st.one_of(st.just(0), st.integers(0, 20_000_000)),
    has_tokens=st.booleans(),
)
traffic = st.builds(
    TrafficLimits,
    requests_per_minute=st.one_of(st.none(), st.integers(1, 20)),
    tokens_per_minute=st.one_of(st.none(), st.integers(1, 20_000), st.just(10**7)),
    concurrent_requests=st.one_of(st.none(), st.integers(1, 4)),
)


async def lived_through(
    caller: Caller, history: list[Visit], *, is_declared: bool
) -> list[tuple[str, Headers]]:
    """What each request was told, and with which headers."""
    told: list[tuple[str, Headers]] = []
    inside: list[tuple[int, Permit, Visit]] = []
    async with gate(None) as door:
        for number, visit in enumerate(history):
            door.clock.advance(timedelta(microseconds=visit.pause_us))
            for _, permit, left in [one for one in inside if one[0] <= number]:
                permit.leave(used_tokens=left.used)
            inside = [one for one in inside if one[0] > number]
            try:
                permit = await entered(door, caller, visit.declared if is_declared else None)
            except Limited as refusal:
                told.append((refusal.message, refusal.headers()))
                continue
            try:
                if visit.has_tokens:
                    await permit.take_tokens(visit.needed)
            except TokensLimited as refusal:
                told.append((refusal.message, refusal.headers()))
                permit.leave(used_tokens=0)
                continue
            if visit.has_tokens:
                inside.append((number + visit.leaves_at, permit, visit))
            else:
                permit.leave(used_tokens=0)
            told.append(("granted", permit.headers))
    return told


@given(traffic, traffic, st.lists(visits, max_size=30))
def test_decisions_are_those_of_separate_calls(
    organization: TrafficLimits, key: TrafficLimits, history: list[Visit]
) -> None:
    caller = Caller(organization=organization, key=key)

    with_the_entry = asyncio.run(lived_through(caller, history, is_declared=True))
    separately = asyncio.run(lived_through(caller, history, is_declared=False))

    assert with_the_entry == separately
