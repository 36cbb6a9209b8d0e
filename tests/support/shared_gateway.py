"""One database and one gateway per module: tests keep apart by organization, as customers do.

A `conftest.py` that imports these fixtures gives them to its folder. A module of async tests says
so: `pytestmark = pytest.mark.asyncio(loop_scope="module")`.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from tests.support import databases
from tests.support.gateway import Gateway, running_gateway, settings_for
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tollhouse.app import connect
from tollhouse.settings import Settings
from tollhouse.storage.database import Database

IMPATIENT = "?options=-csynchronous_commit%3Doff"
"""No test here pulls the plug on PostgreSQL, so none needs to wait for its disk."""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def database_url(migrated_template: str) -> AsyncIterator[str]:
    async with databases.temporary(template=migrated_template) as url:
        yield url + IMPATIENT


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    return settings_for(database_url)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def database(settings: Settings) -> AsyncIterator[Database]:
    opened = await connect(settings)
    yield opened
    await opened.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(settings: Settings) -> AsyncIterator[Gateway]:
    async with running_gateway(settings) as running:
        yield running


@dataclass(frozen=True)
class Gateways:
    """Those of a module whose tests need several settings: one for each."""

    _stack: AsyncExitStack
    _opened: list[tuple[Settings, Gateway]] = field(default_factory=list[tuple[Settings, Gateway]])

    async def offering(self, settings: Settings) -> Gateway:
        for known, gateway in self._opened:
            if known == settings:
                return gateway
        opened = await self._stack.enter_async_context(running_gateway(settings))
        self._opened.append((settings, opened))
        return opened


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateways() -> AsyncIterator[Gateways]:
    async with AsyncExitStack() as stack:
        yield Gateways(stack)


@pytest_asyncio.fixture(loop_scope="module")
async def org(database: Database) -> OrganizationFixture:
    return await new_organization_fixture(database)


@pytest_asyncio.fixture(loop_scope="module")
async def other_org(database: Database) -> OrganizationFixture:
    return await new_organization_fixture(database, "another organization")
