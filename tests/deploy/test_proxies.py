"""The reference configurations of nginx and Envoy, with the real ones in front of a gateway."""

from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest

from tests.support.deployment import Deployment, chat, offering, open_deployment
from tests.support.edges import EdgeStarter, envoy_edge, nginx_edge
from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture
from tests.support.upstream import running_upstream
from tollhouse.settings import Settings
from tollhouse.testing.scripts import Cut, UpstreamScript


@pytest.fixture(params=[nginx_edge, envoy_edge])
async def fronted(
    request: pytest.FixtureRequest, settings: Settings, org: OrganizationFixture, tmp_path: Path
) -> AsyncGenerator[tuple[Deployment, httpx2.AsyncClient]]:
    """A customer whose requests come through a proxy."""
    start: EdgeStarter = request.param
    async with running_upstream() as upstream:
        offered = offering(settings, upstream.base_url)
        async with open_deployment(offered, upstream, org) as deployment:
            gateway = deployment.gateway
            assert isinstance(gateway, Gateway)
            async with (
                start(tmp_path, gateway.port, gateway.port) as edge,
                edge.client(authorization=f"Bearer {deployment.key.value}") as client,
            ):
                yield deployment, client


async def test_an_answer_comes_through(fronted: tuple[Deployment, httpx2.AsyncClient]) -> None:
    deployment, client = fronted

    answer = await client.post("/v1/chat/completions", json=chat())

    assert answer.status_code == 200
    assert answer.headers["x-request-id"]
    assert not [name for name in answer.headers if name.startswith("x-envoy")]
    await deployment.settled(1)


async def test_a_stream_is_not_kept_until_its_end(
    fronted: tuple[Deployment, httpx2.AsyncClient],
) -> None:
    deployment, client = fronted
    deployment.upstream.queue(UpstreamScript(cut=Cut(how="stall", after=3)))

    async with client.stream("POST", "/v1/chat/completions", json=chat(stream=True)) as stream:
        lines = stream.aiter_lines()
        first = await anext(lines)

    # The upstream stalls until the caller leaves: a proxy that buffers would never have shown it.
    assert first.startswith("data: ")
    credit = await deployment.settled(1)
    assert credit.settled_pico_usd > 0


async def test_what_the_gateway_takes_and_refuses_is_left_to_it(
    fronted: tuple[Deployment, httpx2.AsyncClient],
) -> None:
    _, client = fronted

    large = await client.post("/v1/chat/completions", json=chat("x" * 2_000_000))
    unknown = await client.get("/v1/unknown")

    # More than either takes or buffers by itself, which is one megabyte.
    assert large.status_code == 200
    assert unknown.json()["error"]["code"] == "unknown_url"
