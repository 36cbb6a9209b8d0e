"""One database and one gateway per module."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.policies.client import Policies
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


@pytest_asyncio.fixture(loop_scope="module")
async def policies(gateway: Gateway, org: OrganizationFixture) -> AsyncIterator[Policies]:
    """An Admin key with all permissions."""
    async with gateway.client((await org.admin_key()).value) as client:
        yield Policies(client)
