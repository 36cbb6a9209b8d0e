"""One database and one gateway per module: tests keep apart by organization, as customers do."""

from collections.abc import AsyncIterator

import asyncpg
import pytest
import pytest_asyncio

from tests.reports.past import Past, opened
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
    opened_ = await connect(settings)
    yield opened_
    await opened_.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def connection(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """For making and reading a past behind the product's back."""
    raw = await asyncpg.connect(database_url)
    yield raw
    await raw.close()


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


@pytest_asyncio.fixture(loop_scope="module")
async def past(
    world: World, gateway: Gateway, connection: asyncpg.Connection
) -> AsyncIterator[Past]:
    """An organization that has used nothing yet."""
    async with opened(world, gateway, connection) as made:
        yield made
