"""One database and one gateway per module."""

from collections.abc import AsyncIterator

import asyncpg
import pytest_asyncio

from tests.reports.past import Past, opened
from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture
from tests.support.shared_gateway import (
    database,
    database_url,
    gateway,
    org,
    other_org,
    settings,
)

__all__ = ["database", "database_url", "gateway", "org", "other_org", "settings"]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def connection(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """For making and reading a past behind the product's back."""
    raw = await asyncpg.connect(database_url)
    yield raw
    await raw.close()


@pytest_asyncio.fixture(loop_scope="module")
async def past(
    org: OrganizationFixture, gateway: Gateway, connection: asyncpg.Connection
) -> AsyncIterator[Past]:
    """An organization that has used nothing yet."""
    async with opened(org, gateway, connection) as made:
        yield made
