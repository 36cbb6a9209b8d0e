"""A shop that is open."""

from collections.abc import AsyncIterator

import pytest

from tests.support.shop import Shop, offering, open_shop
from tests.support.world import World
from tollhouse.settings import Settings
from tollhouse.testing.upstream import ScriptedUpstream


@pytest.fixture
async def shop(settings: Settings, upstream: ScriptedUpstream, world: World) -> AsyncIterator[Shop]:
    """One model that has everything, on one replica."""
    async with open_shop(offering(settings, upstream.base_url), upstream, world) as opened:
        yield opened
