"""Two cells behind nginx and behind Envoy: the prefix of a key decides which one answers."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from msgspec.structs import replace

from tests.support import databases
from tests.support.credentials import unknown_key
from tests.support.deployment import Deployment, chat, customer_of, offering
from tests.support.edges import EdgeProxy, EdgeStarter, envoy_edge, nginx_edge
from tests.support.gateway import Gateway, running_gateway, settings_for
from tests.support.organization_fixture import new_organization_fixture
from tests.support.upstream import running_upstream
from tollhouse.app import connect
from tollhouse.keys.secrets import Peppers


@dataclass(frozen=True)
class Cells:
    """A customer in each of two cells, and one in the first whose key names no cell."""

    edge: EdgeProxy
    eu1: Deployment
    us1: Deployment
    plain: Deployment


async def _cell(
    stack: AsyncExitStack, template: str, name: str
) -> tuple[Gateway, Deployment, Deployment]:
    """A customer whose keys name the cell, and one whose keys do not."""
    url = await stack.enter_async_context(databases.temporary(template=template))
    upstream = await stack.enter_async_context(running_upstream())
    settings = offering(settings_for(url), upstream.base_url)
    settings = replace(settings, keys=replace(settings.keys, cell=name))
    database = await connect(settings)
    stack.push_async_callback(database.close)
    gateway = await stack.enter_async_context(running_gateway(settings))
    of_cell, of_none = [
        await customer_of(
            gateway,
            upstream,
            await new_organization_fixture(
                database, Peppers(settings.secrets.pepper_bytes(), cell=cell)
            ),
        )
        for cell in (name, None)
    ]
    return gateway, of_cell, of_none


@pytest.fixture(params=[nginx_edge, envoy_edge])
async def cells(
    request: pytest.FixtureRequest, migrated_template: str, tmp_path: Path
) -> AsyncGenerator[Cells]:
    start: EdgeStarter = request.param
    async with AsyncExitStack() as stack:
        first, eu1, plain = await _cell(stack, migrated_template, "eu1")
        second, us1, _ = await _cell(stack, migrated_template, "us1")
        edge = await stack.enter_async_context(start(tmp_path, first.port, second.port))
        yield Cells(edge, eu1, us1, plain)


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
