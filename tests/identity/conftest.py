"""One database and one gateway per module: tests keep apart by organization, as customers do.

A module of async tests says so: `pytestmark = pytest.mark.asyncio(loop_scope="module")`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import httpx2
import msgspec
import pytest
import pytest_asyncio
import uvloop

from tests.identity.creations import START
from tests.support import catalogs, databases
from tests.support.gateway import Gateway, running_gateway, settings_for
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tollhouse.app import connect
from tollhouse.base.clock import HeldClock
from tollhouse.keys.secrets import Peppers
from tollhouse.projects.types import Project
from tollhouse.settings import LedgerSettings, Settings
from tollhouse.storage.database import Database

IMPATIENT = "?options=-csynchronous_commit%3Doff"
"""No test here pulls the plug on PostgreSQL, so none needs to wait for its disk."""


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop that workers run on."""
    return {"uvloop": uvloop.new_event_loop}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def database_url(migrated_template: str) -> AsyncIterator[str]:
    async with databases.temporary(template=migrated_template) as url:
        yield url + IMPATIENT


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    """Of a sandbox with a model, where every operation can be carried out."""
    return msgspec.structs.replace(
        settings_for(database_url),
        ledger=LedgerSettings(is_sandbox=True),
        backends=catalogs.BACKENDS,
        models=catalogs.MODELS,
    )


@pytest.fixture(scope="module")
def peppers(settings: Settings) -> Peppers:
    return Peppers(settings.secrets.pepper_bytes())


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def database(settings: Settings) -> AsyncIterator[Database]:
    opened = await connect(settings)
    yield opened
    await opened.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(settings: Settings) -> AsyncIterator[Gateway]:
    async with running_gateway(settings) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def org(database: Database, peppers: Peppers) -> OrganizationFixture:
    return await new_organization_fixture(database, peppers)


@pytest_asyncio.fixture(loop_scope="module")
async def other_org(database: Database, peppers: Peppers) -> OrganizationFixture:
    return await new_organization_fixture(database, peppers, "another organization")


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock(START)


@pytest_asyncio.fixture(loop_scope="module")
async def held(settings: Settings, clock: HeldClock) -> AsyncIterator[Gateway]:
    """A gateway whose time the test holds."""
    async with running_gateway(settings, clock) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def client(held: Gateway, org: OrganizationFixture) -> AsyncIterator[httpx2.AsyncClient]:
    """An Admin key with all permissions, at the gateway whose time the test holds."""
    async with held.client((await org.admin_key()).value) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def project(org: OrganizationFixture) -> Project:
    return await org.project()
