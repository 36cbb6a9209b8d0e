"""The reference configurations of nginx and Envoy, with the real ones in front of a gateway."""

from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio

from tests.support.deployment import Deployment, chat
from tests.support.edges import EdgeProxy, EdgeStarter, envoy_edge, nginx_edge
from tests.support.gateway import Gateway
from tests.support.own_customer import deployment
from tests.support.shared_deployment import gateway, offered, upstream
from tests.support.shared_gateway import database, database_url, org, settings
from tests.upstream.scripts import Cut, UpstreamScript

__all__ = [
    "database",
    "database_url",
    "deployment",
    "gateway",
    "offered",
    "org",
    "settings",
    "upstream",
]

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=[nginx_edge, envoy_edge])
async def edge(
    request: pytest.FixtureRequest, gateway: Gateway, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[EdgeProxy]:
    start: EdgeStarter = request.param
    async with start(tmp_path_factory.mktemp("edge"), gateway.port, gateway.port) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def client(edge: EdgeProxy, deployment: Deployment) -> AsyncIterator[httpx2.AsyncClient]:
    """A customer whose requests come through a proxy."""
    async with edge.client(authorization=f"Bearer {deployment.key.value}") as opened:
        yield opened


async def test_an_answer_comes_through(deployment: Deployment, client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/chat/completions", json=chat())

    assert answer.status_code == 200
    assert answer.headers["x-request-id"]
    assert not [name for name in answer.headers if name.startswith("x-envoy")]
    await deployment.settled(1)


async def test_a_stream_is_not_kept_until_its_end(
    deployment: Deployment, client: httpx2.AsyncClient
) -> None:
    deployment.upstream.queue(UpstreamScript(cut=Cut(how="stall", after=3)))

    async with client.stream("POST", "/v1/chat/completions", json=chat(stream=True)) as stream:
        lines = stream.aiter_lines()
        first = await anext(lines)

    # The upstream stalls until the caller leaves: a proxy that buffers would never have shown it.
    assert first.startswith("data: ")
    credit = await deployment.settled(1)
    assert credit.settled_pico_usd > 0


async def test_what_the_gateway_takes_and_refuses_is_left_to_it(
    client: httpx2.AsyncClient,
) -> None:
    large = await client.post("/v1/chat/completions", json=chat("x" * 2_000_000))
    unknown = await client.get("/v1/unknown")

    # More than either takes or buffers by itself, which is one megabyte.
    assert large.status_code == 200
    assert unknown.json()["error"]["code"] == "unknown_url"
