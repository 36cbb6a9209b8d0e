"""One gateway in front of one scripted upstream per module, with one customer for all its tests.

To be imported like the fixtures of `shared_gateway`, beside them. A module that offers something
else has a fixture `offered` of its own.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.ledger.invariants import assert_conserved
from tests.support.deployment import Deployment, customer_of, offering
from tests.support.gateway import Gateway, running_gateway
from tests.support.organization_fixture import new_organization_fixture
from tests.support.upstream import running_upstream
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings
from tollhouse.storage.database import Database


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with running_upstream() as running:
        yield running


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    return offering(settings, upstream.base_url)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(offered: Settings) -> AsyncIterator[Gateway]:
    async with running_gateway(offered) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def deployment(
    gateway: Gateway, upstream: ScriptedUpstream, database: Database
) -> AsyncIterator[Deployment]:
    """When its tests are over, every hold has been resolved and the books add up."""
    opened = await customer_of(gateway, upstream, await new_organization_fixture(database))
    yield opened
    await opened.settled(await opened.admitted())
    await assert_conserved(database)
