"""One database per module, whose money must add up when all its tests are over.

To be imported by a module of async tests with a `pytestmark` as in `tests/support/shared_gateway`.
"""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.ledger.invariants import assert_conserved
from tests.support.organization_fixture import OrganizationFixture
from tests.support.shared_gateway import database_url, org, other_org, settings
from tests.support.spending import Spender, spender_of
from tollhouse.app import connect
from tollhouse.settings import Settings
from tollhouse.storage.database import Database

__all__ = ["database", "database_url", "org", "other_org", "settings"]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def database(settings: Settings) -> AsyncIterator[Database]:
    opened = await connect(settings)
    yield opened
    await assert_conserved(opened)
    await opened.close()


@pytest_asyncio.fixture(loop_scope="module")
async def spender(org: OrganizationFixture) -> AsyncIterator[Spender]:
    """One without credit."""
    async with spender_of(org) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def funded_spender(org: OrganizationFixture) -> AsyncIterator[Spender]:
    async with spender_of(org) as opened:
        await opened.grant(10**6)
        yield opened
