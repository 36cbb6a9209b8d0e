"""Redis flushed, killed and brought back under load through the whole gateway."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import msgspec
import pytest

from tests.identity.waiting import until
from tests.inference.test_chat import PATH, cost, records
from tests.ledger.invariants import assert_conserved
from tests.limits.test_redis_lost import is_alone, slots_taken
from tests.support.deployment import Deployment, chat, offering, open_deployment
from tests.support.gateway import TIMEOUT_SECONDS
from tests.support.limits import set_limit
from tests.support.organization_fixture import HeldProjectKey, OrganizationFixture
from tests.support.redis_server import RedisServer, running_redis
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.traffic import TrafficLimits
from tollhouse.limits.types import LimitScope
from tollhouse.settings import RedisSettings, Settings

CLIENTS = 6
ANSWERS_BETWEEN = 30
AMPLE = TrafficLimits(
    requests_per_minute=10_000_000, tokens_per_minute=2_000_000_000, concurrent_requests=100
)
TWO_AT_ONCE = TrafficLimits(concurrent_requests=2)
STALL = json.dumps({"script": {"cut": {"how": "stall", "after": 3}}})


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    with running_redis() as server:
        yield server


@pytest.fixture
async def deployment(
    settings: Settings,
    upstream: ScriptedUpstream,
    org: OrganizationFixture,
    redis_server: RedisServer,
) -> AsyncIterator[Deployment]:
    """A Redis that is slow because the machine is does not count as lost here."""
    redis = RedisSettings(url=redis_server.url, answer_seconds=TIMEOUT_SECONDS)
    offered = msgspec.structs.replace(offering(settings, upstream.base_url), redis=redis)
    async with open_deployment(offered, upstream, org) as opened:
        await set_limit(org, AMPLE)
        yield opened


class Load:
    """Callers without a pause, whole and streamed in turns; every one of them is served."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client
        self._is_over = False
        self._callers = [asyncio.create_task(self._call()) for _ in range(CLIENTS)]
        self.usages: list[dict[str, Any]] = []

    async def _call(self) -> None:
        while not self._is_over:
            is_stream = len(self.usages) % 2 == 0
            options = {"include_usage": True} if is_stream else None
            body = chat(stream=is_stream, stream_options=options)
            answer = await self._client.post(PATH, json=body)
            assert answer.is_success, answer.text
            told = records(answer.text)[-2] if is_stream else answer.json()
            self.usages.append(told["usage"])

    async def go_on(self) -> None:
        enough = len(self.usages) + ANSWERS_BETWEEN

        async def is_so() -> bool:
            assert not any(caller.done() for caller in self._callers)
            return len(self.usages) >= enough

        await until(is_so)

    async def stop(self) -> list[dict[str, Any]]:
        self._is_over = True
        await asyncio.gather(*self._callers)
        return self.usages


async def turned(*, alone: bool) -> None:
    """Until the worker has noticed that Redis is gone, or back."""

    async def is_so() -> bool:
        return is_alone() == alone

    await until(is_so)


async def narrow_key(deployment: Deployment) -> HeldProjectKey:
    held = await deployment.org.project_key(deployment.project)
    await set_limit(deployment.org, TWO_AT_ONCE, scope=LimitScope.KEY, scope_id=held.key.id)
    return held


async def assert_two_at_once(deployment: Deployment, redis_server: RedisServer) -> None:
    """Counted in Redis: another worker would be refused too."""
    held = await narrow_key(deployment)
    before, body = slots_taken(redis_server), chat(STALL, stream=True)
    deployment.upstream.seen.clear()
    async with (
        deployment.gateway.client(held.value) as client,
        client.stream("POST", PATH, json=body) as first,
        client.stream("POST", PATH, json=body) as second,
    ):
        assert first.is_success
        assert second.is_success
        refused = await client.post(PATH, json=body)
        taken = slots_taken(redis_server) - before
        for exchange in deployment.upstream.seen:
            exchange.release()
        await first.aread()
        await second.aread()

    assert refused.json()["error"]["code"] == "concurrency_limit_exceeded"
    # The organization's limit counts the same two.
    assert taken == 4

    async def is_given_back() -> bool:
        return slots_taken(redis_server) == before

    await until(is_given_back)


@pytest.mark.guarantee("T5")
async def test_money_does_not_drift_and_limits_return(
    deployment: Deployment, redis_server: RedisServer
) -> None:
    await assert_two_at_once(deployment, redis_server)
    spent = (await deployment.settled(2)).settled_pico_usd

    async with deployment.customer() as client:
        load = Load(client)
        await load.go_on()
        with redis_server.client() as redis:
            redis.flushall()
            redis.script_flush()
        await load.go_on()
        redis_server.kill()
        await turned(alone=True)
        await load.go_on()
        redis_server.start()
        await turned(alone=False)
        await load.go_on()
        usages = await load.stop()

    credit = await deployment.settled(2 + len(usages))
    assert credit.settled_pico_usd - spent == sum(map(cost, usages))
    await assert_conserved(deployment.org.database)
    await assert_two_at_once(deployment, redis_server)
