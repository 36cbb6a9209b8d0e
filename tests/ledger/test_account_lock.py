"""Whatever changes credit or caps waits for the account, so that no admission comes in between."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.identity.waiting import holding, until_a_lock_is_awaited
from tests.support.organization_fixture import OrganizationFixture
from tests.support.spending import Spender, spender_of
from tollhouse.ledger.types import CapScope, Period

LOCK = "SELECT 1 FROM accounts WHERE organization_id = $1 FOR UPDATE"
PLACE = (CapScope.PROJECT, Period.MONTH)

CHANGES: dict[str, Callable[[Spender], Awaitable[object]]] = {
    "grant": lambda spender: spender.grant(1),
    "set a cap": lambda spender: spender.set_cap(spender.place(*PLACE), 50),
    "clear a cap": lambda spender: spender.clear_cap(spender.place(*PLACE)),
}


@pytest.fixture
async def spender(org: OrganizationFixture) -> AsyncIterator[Spender]:
    async with spender_of(org) as opened:
        await opened.grant(1_000)
        await opened.set_cap(opened.place(*PLACE), 100)
        yield opened


@pytest.mark.parametrize("name", CHANGES)
async def test_a_change_waits_for_the_account(
    spender: Spender, database_url: str, name: str
) -> None:
    async with holding(database_url, LOCK, spender.org.organization_id):
        change = asyncio.ensure_future(CHANGES[name](spender))
        await until_a_lock_is_awaited(database_url)
        assert not change.done()

    await change
