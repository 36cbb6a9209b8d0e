"""The gate, with Redis and without: the same rules, answers and headers."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from datetime import timedelta
from typing import Any, TypeVar

import msgspec
import pytest
from redis.crc import key_slot

from tests.limits.gates import Caller, Gate, at_once, gate, requests, tokens
from tests.support.gateway import TIMEOUT_SECONDS
from tests.support.redis_server import RedisServer
from tollhouse.api import errors
from tollhouse.api.errors import Presentation
from tollhouse.base.traffic import TrafficLimits
from tollhouse.contract.errors import ErrorShape
from tollhouse.limits.errors import ConcurrencyLimited, Limited, RequestsLimited, TokensLimited
from tollhouse.limits.limiter import UNCOUNTED, Permit

T = TypeVar("T")


@pytest.fixture(params=["redis", "alone"])
async def door(request: pytest.FixtureRequest, redis_server: RedisServer) -> AsyncIterator[Gate]:
    async with gate(redis_server.url if request.param == "redis" else None) as opened:
        yield opened


async def together(*work: Coroutine[Any, Any, T]) -> list[T | BaseException]:
    """In one batch, so that no time passes in between."""
    return await asyncio.gather(*work, return_exceptions=True)


def passes(found: list[Any]) -> list[Permit]:
    return [one for one in found if isinstance(one, Permit)]


def refusals(found: list[Any]) -> list[Limited]:
    return [one for one in found if isinstance(one, Limited)]


async def test_so_many_requests_a_minute_pass_and_the_next_is_told_when(door: Gate) -> None:
    caller = Caller(project=requests(3))

    found = await together(*(door.limiter.enter(caller.request()) for _ in range(4)))

    assert len(passes(found)) == 3
    (refused,) = refusals(found)
    assert isinstance(refused, RequestsLimited)
    assert (refused.kind, refused.code) == (429, "rate_limit_exceeded")
    assert refused.retry_after_seconds == 20
    assert refused.message == (
        "The project's limit of 3 requests per minute is reached. Try again in 20 s."
    )
    assert dict(refused.headers()) == {
        "x-ratelimit-limit-requests": "3",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": dict(refused.headers())["x-ratelimit-reset-requests"],
    }


async def test_an_answer_says_what_is_left_in_the_tightest_scope(door: Gate) -> None:
    caller = Caller(organization=requests(1000), project=requests(2), key=requests(500))

    entered = await door.limiter.enter(caller.request())

    assert entered.headers == (
        ("x-ratelimit-limit-requests", "2"),
        ("x-ratelimit-remaining-requests", "1"),
        ("x-ratelimit-reset-requests", "30s"),
    )


async def test_so_many_requests_at_once_pass_until_one_leaves(door: Gate) -> None:
    caller = Caller(key=at_once(2))
    first, _ = [await door.limiter.enter(caller.request()) for _ in range(2)]

    with pytest.raises(ConcurrencyLimited) as refused:
        await door.limiter.enter(caller.request())
    first.leave()
    first.leave()
    await door.limiter.enter(caller.request())
    with pytest.raises(ConcurrencyLimited):
        await door.limiter.enter(caller.request())

    assert refused.value.code == "concurrency_limit_exceeded"
    assert refused.value.retry_after_seconds == 1
    assert refused.value.message == (
        "The key's limit of 2 requests at once is reached. Try again when one of them has ended."
    )


async def test_a_refused_request_takes_nothing_anywhere(door: Gate) -> None:
    """The organization's bucket and slots stay as they are while a key of it is refused."""
    both = TrafficLimits(requests_per_minute=2, concurrent_requests=2)
    busy = Caller(organization=both, key=at_once(1))
    other = busy.with_other_key()

    found = await together(
        door.limiter.enter(busy.request()),
        *(door.limiter.enter(busy.request()) for _ in range(5)),
        door.limiter.enter(other.request()),
        door.limiter.enter(other.request()),
    )

    assert len(passes(found)) == 2
    assert [type(one) for one in refusals(found)] == [ConcurrencyLimited] * 5 + [RequestsLimited]


async def test_organizations_do_not_share_limits(door: Gate) -> None:
    one, other = Caller(organization=at_once(1)), Caller(organization=at_once(1))

    for caller in (one, other):
        await door.limiter.enter(caller.request())


async def test_tokens_are_taken_refused_and_given_back(door: Gate) -> None:
    caller = Caller(organization=tokens(1000), project=tokens(100))
    first, second = [await door.limiter.enter(caller.request()) for _ in range(2)]

    taken = await together(first.take_tokens(80), second.take_tokens(30))

    assert first.headers == (
        ("x-ratelimit-limit-tokens", "100"),
        ("x-ratelimit-remaining-tokens", "20"),
        ("x-ratelimit-reset-tokens", "48s"),
    )
    (refused,) = refusals(taken)
    assert isinstance(refused, TokensLimited)
    assert (refused.code, refused.retry_after_seconds) == ("rate_limit_exceeded", 6)
    assert refused.message == (
        "The project's limit of 100 tokens per minute cannot cover the 30 that this request may"
        " use. Try again in 6 s."
    )
    first.leave(used_tokens=20)
    third = await door.limiter.enter(caller.request())
    await third.take_tokens(80)


async def test_what_was_used_beyond_what_was_taken_is_taken_later(door: Gate) -> None:
    caller = Caller(key=tokens(100))
    first = await door.limiter.enter(caller.request())
    await first.take_tokens(10)

    first.leave(used_tokens=100_000)
    first.leave(used_tokens=0)
    second = await door.limiter.enter(caller.request())

    with pytest.raises(TokensLimited) as refused:
        await second.take_tokens(100)
    assert refused.value.retry_after_seconds == 60


async def test_a_request_larger_than_the_bucket_needs_it_full(door: Gate) -> None:
    caller = Caller(key=tokens(100))
    first, second = [await door.limiter.enter(caller.request()) for _ in range(2)]

    large, larger = await together(first.take_tokens(101), second.take_tokens(10**30))

    assert large is None
    assert isinstance(larger, TokensLimited)


async def test_request_and_token_headers_stand_side_by_side(door: Gate) -> None:
    caller = Caller(key=TrafficLimits(requests_per_minute=60, tokens_per_minute=60))
    entered = await door.limiter.enter(caller.request())

    await entered.take_tokens(1)

    assert [name for name, _ in entered.headers] == [
        f"x-ratelimit-{what}-{counted}"
        for counted in ("requests", "tokens")
        for what in ("limit", "remaining", "reset")
    ]


async def test_a_refusal_is_answered_with_all_that_helps_to_retry(door: Gate) -> None:
    caller = Caller(key=requests(1))
    _, refused = await together(*(door.limiter.enter(caller.request()) for _ in range(2)))
    assert isinstance(refused, Limited)
    presentation = Presentation(
        request_id=caller.request().request_id, shape=ErrorShape.OPENAI, documentation_url=None
    )

    reply = errors.render(refused, presentation)

    assert reply.status == 429
    assert msgspec.json.decode(reply.body)["error"]["type"] == "rate_limit_error"
    assert dict(reply.headers) == {
        **dict(refused.headers()),
        "retry-after": "60",
        "retry-after-ms": "60000",
    }
    assert len(refused.headers()) == 3


async def test_who_has_no_limit_costs_nothing(redis_server: RedisServer) -> None:
    caller = Caller()
    async with gate(redis_server.url) as door:
        entered = await door.limiter.enter(caller.request())
        await entered.take_tokens(10**12)
        entered.leave(used_tokens=1)
        with redis_server.client() as client:
            others = [one for one in client.client_list() if one["cmd"] != "client|list"]

    assert entered is UNCOUNTED
    assert entered.headers == ()
    assert others == [], "nobody has called Redis"


async def test_a_caller_who_is_cancelled_while_entering_holds_no_slot(
    redis_server: RedisServer,
) -> None:
    caller = Caller(key=at_once(1))
    async with gate(redis_server.url) as door:
        (await door.limiter.enter(caller.request())).leave()
        redis_server.pause()
        entering = asyncio.create_task(door.limiter.enter(caller.request()))
        await asyncio.sleep(0)
        entering.cancel()
        await asyncio.wait([entering])
        redis_server.resume()

        async with asyncio.timeout(TIMEOUT_SECONDS):
            await door.limiter.enter(caller.request())

    assert entering.cancelled()


async def test_alone_a_bucket_fills_with_time() -> None:
    caller = Caller(key=requests(2))
    async with gate(None) as door:
        for _ in range(2):
            await door.limiter.enter(caller.request())
        with pytest.raises(RequestsLimited):
            await door.limiter.enter(caller.request())
        door.clock.advance(timedelta(seconds=30))

        entered = await door.limiter.enter(caller.request())

    assert dict(entered.headers)["x-ratelimit-remaining-requests"] == "0"
    assert dict(entered.headers)["x-ratelimit-reset-requests"] == "1m0s"


async def test_keys_of_one_organization_stand_in_one_slot_of_a_cluster(
    redis_server: RedisServer,
) -> None:
    everything = TrafficLimits(requests_per_minute=9, tokens_per_minute=9, concurrent_requests=9)
    caller = Caller(organization=everything, project=everything, key=everything)
    async with gate(redis_server.url) as door:
        entered = await door.limiter.enter(caller.request())
        await entered.take_tokens(1)

        with redis_server.client() as client:
            keys = list(client.scan_iter())

    assert len(keys) == 9
    assert len({key_slot(key.encode()) for key in keys}) == 1
