"""Fixtures of a running gateway with a scripted backend."""

from collections.abc import AsyncIterator

import pytest

from tests.support.deployment import Deployment, offering, open_deployment
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.settings import Settings
from tollhouse.testing.upstream import ScriptedUpstream


@pytest.fixture
async def deployment(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> AsyncIterator[Deployment]:
    """One model that has everything, on one replica."""
    async with open_deployment(offering(settings, upstream.base_url), upstream, org) as opened:
        yield opened
