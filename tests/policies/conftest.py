"""One database and one gateway per module."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.policies.client import Policies
from tests.support.gateway import Gateway
from tests.support.shared_gateway import (
    database,
    database_url,
    gateway,
    other_world,
    peppers,
    settings,
    world,
)
from tests.support.world import World

__all__ = ["database", "database_url", "gateway", "other_world", "peppers", "settings", "world"]


@pytest_asyncio.fixture(loop_scope="module")
async def policies(gateway: Gateway, world: World) -> AsyncIterator[Policies]:
    """An Admin key with all permissions."""
    async with gateway.client((await world.admin_key()).value) as client:
        yield Policies(client)
