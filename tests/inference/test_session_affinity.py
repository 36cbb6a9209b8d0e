"""Requests of one session, or with one cache key, go to the same replica."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.support.deployment import Deployment, chat, offering
from tests.support.upstream import running_upstream
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/chat/completions"
REQUESTS = 30


@dataclass(frozen=True)
class Replicas:
    deployment: Deployment
    upstreams: tuple[ScriptedUpstream, ScriptedUpstream]

    async def seen(self, hints: list[tuple[dict[str, str], dict[str, str]]]) -> list[int]:
        """How many of these requests, each with headers and fields, each replica has seen."""
        before = [len(upstream.seen) for upstream in self.upstreams]
        async with self.deployment.customer() as client:
            for headers, fields in hints:
                answer = await client.post(PATH, json=chat(**fields), headers=headers)
                assert answer.is_success
        return sorted(
            len(upstream.seen) - count
            for upstream, count in zip(self.upstreams, before, strict=True)
        )


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def second() -> AsyncIterator[ScriptedUpstream]:
    async with running_upstream() as running:
        yield running


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream, second: ScriptedUpstream) -> Settings:
    return offering(settings, upstream.base_url, second.base_url)


@pytest.fixture
def replicas(deployment: Deployment, second: ScriptedUpstream) -> Replicas:
    return Replicas(deployment, (deployment.upstream, second))


async def test_one_hint_draws_to_one_replica(replicas: Replicas) -> None:
    session, key = {"x-service-session-id": "one"}, {"prompt_cache_key": "one"}

    assert await replicas.seen([(session, {})] * REQUESTS) == [0, REQUESTS]
    assert await replicas.seen([({}, key)] * REQUESTS) == [0, REQUESTS]


async def test_a_session_says_more_than_a_cache_key(replicas: Replicas) -> None:
    keys = [{"prompt_cache_key": str(number)} for number in range(REQUESTS)]

    apart = await replicas.seen([({}, key) for key in keys])
    together = await replicas.seen([({"x-service-session-id": "one"}, key) for key in keys])

    assert apart[0] > 0
    assert together == [0, REQUESTS]


@pytest.mark.parametrize("header", ["x-session-affinity", "X-Claude-Code-Session-Id"])
async def test_headers_of_other_interfaces_name_a_session(replicas: Replicas, header: str) -> None:
    keys = [{"prompt_cache_key": str(number)} for number in range(REQUESTS)]

    assert await replicas.seen([({header: "one"}, key) for key in keys]) == [0, REQUESTS]


async def test_a_given_header_says_more_than_another_one(replicas: Replicas) -> None:
    hints = [
        ({"x-service-session-id": "one", "x-session-affinity": str(number)}, dict[str, str]())
        for number in range(REQUESTS)
    ]

    assert await replicas.seen(hints) == [0, REQUESTS]


@pytest.mark.parametrize("value", ["", "a" * 513])
async def test_an_unfit_value_of_another_header_is_ignored(replicas: Replicas, value: str) -> None:
    assert sum(await replicas.seen([({"x-session-affinity": value}, {})])) == 1
