"""6: whoever made the request is gone. Its money is the process's business, not the request's."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.faults.recovery import LOCK_ACCOUNT, Money, money
from tests.identity.waiting import holding, until_a_lock_is_awaited
from tests.ledger.invariants import assert_conserved
from tests.ledger.money import WAIT_MAX, Payer, new_batcher, new_payer, posted
from tollhouse.base.tasks import Tasks
from tollhouse.ledger import reaper
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.types import Hold
from tollhouse.storage.database import Database

DRAIN_SECONDS = 120.0


@pytest.fixture
async def payer(database: Database) -> Payer:
    return await new_payer(database, credit=100)


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    running = Tasks()
    yield running
    assert await running.drain(deadline_seconds=DRAIN_SECONDS) == 0


@pytest.fixture
def batcher(database: Database, tasks: Tasks) -> Batcher:
    return new_batcher(database, tasks)


async def settle(batcher: Batcher, hold: Hold) -> None:
    await batcher.resolve(posted(hold, 25))


async def cancel(request: "asyncio.Task[None]") -> None:
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request


async def test_a_request_cancelled_while_it_is_admitted_holds_nothing(
    database: Database, database_url: str, payer: Payer, batcher: Batcher, tasks: Tasks
) -> None:
    async with holding(database_url, LOCK_ACCOUNT, payer.organization_id):
        request = asyncio.create_task(batcher.admit(payer.hold(60), wait_max=WAIT_MAX))
        await until_a_lock_is_awaited(database_url)
        await cancel(request)

    assert await tasks.drain(deadline_seconds=DRAIN_SECONDS) == 0
    assert await money(database, payer) == Money()
    await reaper.run(database)
    await assert_conserved(database)


async def test_a_request_cancelled_while_it_is_settled_is_charged(
    database: Database, database_url: str, payer: Payer, batcher: Batcher, tasks: Tasks
) -> None:
    hold = payer.hold(60)
    await batcher.admit(hold, wait_max=WAIT_MAX)
    async with holding(database_url, LOCK_ACCOUNT, payer.organization_id):
        request = asyncio.create_task(settle(batcher, hold))
        await until_a_lock_is_awaited(database_url)
        await cancel(request)

    assert await tasks.drain(deadline_seconds=DRAIN_SECONDS) == 0
    assert await money(database, payer) == Money(settled=25)
    await reaper.run(database)
    await assert_conserved(database)
