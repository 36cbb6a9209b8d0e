"""Limits over Redis on the way to a model: what is called, and what is refused unread."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest
import pytest_asyncio

from tests.hostile.clients import request_head
from tests.limits.test_expected_tokens import calls
from tests.support.deployment import Deployment, chat, offering, open_deployment
from tests.support.gateway import TIMEOUT_SECONDS
from tests.support.limits import set_limit
from tests.support.organization_fixture import OrganizationFixture
from tests.support.redis_server import RedisServer, running_redis
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.traffic import TrafficLimits
from tollhouse.settings import RedisSettings, Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/chat/completions"
AMPLE = TrafficLimits(
    requests_per_minute=100_000, tokens_per_minute=10_000_000, concurrent_requests=100
)


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    with running_redis() as server:
        with server.client() as client:
            client.config_set("slowlog-log-slower-than", 0)
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def counted(
    settings: Settings,
    upstream: ScriptedUpstream,
    org: OrganizationFixture,
    redis_server: RedisServer,
) -> AsyncIterator[Deployment]:
    redis = RedisSettings(url=redis_server.url, answer_seconds=TIMEOUT_SECONDS)
    offered = msgspec.structs.replace(offering(settings, upstream.base_url), redis=redis)
    async with open_deployment(offered, upstream, org) as opened:
        yield opened


async def test_a_chat_with_a_declared_size_asks_redis_once(
    counted: Deployment, redis_server: RedisServer
) -> None:
    await set_limit(counted.org, AMPLE)
    async with counted.customer() as client:
        first = await client.post(PATH, json=chat())
        await counted.settled(1)
        second = await client.post(PATH, json=chat())

    assert [first.status_code, second.status_code] == [200, 200]
    # Correcting and leaving are sent along, and nothing waits for them.
    assert calls(redis_server)[:4] == ["count", "leave", "leave", "count"]
    assert "x-ratelimit-remaining-tokens" in first.headers


async def test_a_chat_without_a_declared_size_asks_twice(
    counted: Deployment, redis_server: RedisServer
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield msgspec.json.encode(chat())

    await set_limit(counted.org, AMPLE)
    async with counted.customer() as client:
        headers = {"content-type": "application/json"}
        answer = await client.post(PATH, content=pieces(), headers=headers)

    assert answer.is_success, answer.text
    assert calls(redis_server)[:2] == ["count", "count"]


async def test_without_a_limit_redis_is_not_asked(
    counted: Deployment, redis_server: RedisServer
) -> None:
    async with counted.customer() as client:
        answer = await client.post(PATH, json=chat())

    assert answer.is_success
    assert calls(redis_server) == []


async def test_a_key_over_its_request_limit_is_refused_before_its_body(
    counted: Deployment,
) -> None:
    await set_limit(counted.org, TrafficLimits(requests_per_minute=1, tokens_per_minute=10**7))
    async with counted.customer() as client:
        await client.post(PATH, json=chat())
        url = client.base_url
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(request_head(PATH, counted.key.value, 100))
    async with asyncio.timeout(TIMEOUT_SECONDS):
        status = await reader.readline()
    writer.close()

    assert status.split()[1] == b"429"
