"""Two cells behind nginx and behind Envoy: the prefix of a key decides which one answers."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from msgspec.structs import replace

from tests.identity.waiting import until
from tests.support import databases
from tests.support.credentials import unknown_key
from tests.support.deployment import Deployment, chat, customer_of, offering
from tests.support.edges import EdgeProxy, EdgeStarter, envoy_edge, nginx_edge
from tests.support.gateway import Gateway, running_gateway, settings_for
from tests.support.organization_fixture import new_organization_fixture
from tests.support.upstream import running_upstream
from tollhouse.app import connect
from tollhouse.cli.moves.routes import RENDERERS, KeyRoute
from tollhouse.keys.secrets import redact

FORMER = "a23456789012345f"
"""The longest name of a cell makes the longest expression, which Envoy must accept."""


@dataclass(frozen=True)
class Cells:
    """A customer in each of two cells, one without a cell in its key, and one that moved to us1."""

    edge: EdgeProxy
    eu1: Deployment
    us1: Deployment
    plain: Deployment
    moved: Deployment


async def _cell(
    stack: AsyncExitStack, template: str, name: str
) -> tuple[Gateway, Deployment, Deployment, Deployment]:
    """Customers whose keys name the cell, no cell, and another cell."""
    url = await stack.enter_async_context(databases.temporary(template=template))
    upstream = await stack.enter_async_context(running_upstream())
    settings = offering(settings_for(url), upstream.base_url)
    settings = replace(settings, keys=replace(settings.keys, cell=name))
    database = await connect(settings)
    stack.push_async_callback(database.close)
    gateway = await stack.enter_async_context(running_gateway(settings))
    of_cell, of_none, of_another = [
        await customer_of(
            gateway,
            upstream,
            await new_organization_fixture(database, cell=cell),
        )
        for cell in (name, None, FORMER)
    ]
    return gateway, of_cell, of_none, of_another


@pytest.fixture(params=[nginx_edge, envoy_edge])
async def cells(
    request: pytest.FixtureRequest, migrated_template: str, tmp_path: Path
) -> AsyncGenerator[Cells]:
    start: EdgeStarter = request.param
    async with AsyncExitStack() as stack:
        first, eu1, plain, _ = await _cell(stack, migrated_template, "eu1")
        second, us1, _, moved = await _cell(stack, migrated_template, "us1")
        edge = await stack.enter_async_context(start(tmp_path, first.port, second.port))
        yield Cells(edge, eu1, us1, plain, moved)


async def _status(client: httpx2.AsyncClient, **headers: str) -> int:
    answer = await client.post("/v1/chat/completions", json=chat(), headers=headers)
    return answer.status_code


async def test_each_credential_reaches_the_cell_that_it_names(cells: Cells) -> None:
    async with cells.edge.client() as client:
        for customer in (cells.eu1, cells.us1, cells.plain):
            key = customer.key.value
            assert await _status(client, authorization=f"Bearer {key}") == 200
            assert await _status(client, authorization=f"bearer  {key}") == 200
            assert await _status(client, **{"x-api-key": key}) == 200
            admin = {"authorization": f"Bearer {customer.admin.value}"}
            assert (await client.get("/v1/organization/admin_api_keys", headers=admin)).is_success
        # What names no known cell is answered by the first.
        elsewhere = {"x-api-key": unknown_key("thp_ap1_")}
        refused = await client.get("/v1/models", headers=elsewhere)
        keyless = await client.get("/v1/models")

    # Every request was paid for where its organization lives.
    for customer in (cells.eu1, cells.us1, cells.plain):
        await customer.settled(3)
    assert len(cells.eu1.upstream.seen) == 6
    assert len(cells.us1.upstream.seen) == 3
    assert refused.json()["error"]["code"] == "wrong_cell"
    assert keyless.json()["error"]["code"] == "missing_api_key"


async def test_a_moved_key_follows_its_route_without_a_restart(cells: Cells) -> None:
    moved = {"authorization": f"Bearer {cells.moved.key.value}"}
    route = KeyRoute(key=redact(cells.moved.key.value), cell="us1")

    async with cells.edge.client() as client:

        async def is_routed() -> bool:
            return (await client.get("/v1/models", headers=moved)).status_code == 200

        assert not await is_routed()
        await cells.edge.move_keys(RENDERERS[cells.edge.format](route))
        await until(is_routed)

        neighbour = {"authorization": f"Bearer {cells.eu1.key.value}"}
        assert (await client.get("/v1/models", headers=neighbour)).status_code == 200
        assert await _status(client, **{"x-api-key": cells.moved.key.value}) == 200
