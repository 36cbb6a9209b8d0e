"""One database and one gateway per module: tests keep apart by organization, as customers do.

A `conftest.py` that imports these fixtures gives them to its folder. A module of async tests says
so: `pytestmark = pytest.mark.asyncio(loop_scope="module")`.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support import databases
from tests.support.gateway import Gateway, running_gateway, settings_for
from tests.support.world import World, new_world
from tollhouse.app import connect
from tollhouse.keys.secrets import Peppers
from tollhouse.settings import Settings
from tollhouse.storage.database import Database

HASTY = "?options=-csynchronous_commit%3Doff"
"""No test here pulls the plug on PostgreSQL, so none needs to wait for its disk."""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def database_url(migrated_template: str) -> AsyncIterator[str]:
    async with databases.temporary(template=migrated_template) as url:
        yield url + HASTY


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    return settings_for(database_url)


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
async def world(database: Database, peppers: Peppers) -> World:
    return await new_world(database, peppers)


@pytest_asyncio.fixture(loop_scope="module")
async def other_world(database: Database, peppers: Peppers) -> World:
    return await new_world(database, peppers, "another organization")
