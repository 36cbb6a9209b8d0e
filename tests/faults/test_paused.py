"""7: a worker stands still for so long that it counts as dead, and then goes on.

Its settlement wins as long as nothing was decided, and has no effect afterwards.
"""

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from tests.faults.recovery import LOCK_ACCOUNT, Money, decide, money, reap, through
from tests.faults.worker import Worker, working
from tests.identity.proxy import proxied
from tests.identity.waiting import holding, until, until_a_lock_is_awaited
from tests.ledger.money import Payer, new_payer, posted
from tollhouse.ledger.types import ResolutionResult
from tollhouse.storage.database import Database


@pytest.fixture
async def payer(database: Database) -> Payer:
    return await new_payer(database, credit=100)


@pytest.fixture
async def worker(database_url: str) -> AsyncIterator[Worker]:
    async with working(database_url) as running:
        yield running


async def test_its_settlement_wins_if_nothing_was_decided(
    database: Database, payer: Payer, worker: Worker
) -> None:
    hold = payer.hold(60)
    assert await worker.do(hold) == "admitted"
    worker.pause()
    await reap(database, worker.instance_id)
    assert await money(database, payer) == Money(reserved=60, unsettled=60)
    worker.resume()

    assert await worker.do(posted(hold, 25)) is ResolutionResult.NOW

    await decide(database)
    assert await money(database, payer) == Money(settled=25)


async def test_its_settlement_has_no_effect_once_the_hold_was_decided(
    database: Database, payer: Payer, worker: Worker
) -> None:
    hold = payer.hold(60)
    assert await worker.do(hold) == "admitted"
    worker.pause()
    await reap(database, worker.instance_id)
    await decide(database)
    worker.resume()

    assert await worker.do(posted(hold, 25)) is ResolutionResult.BEFORE

    await decide(database)
    assert await money(database, payer) == Money(unknown=60)


async def test_a_settlement_that_was_under_way_counts_once(
    database: Database, database_url: str, payer: Payer, worker: Worker
) -> None:
    hold = payer.hold(60)
    assert await worker.do(hold) == "admitted"
    async with holding(database_url, LOCK_ACCOUNT, payer.organization_id):
        worker.begin(posted(hold, 25))
        await until_a_lock_is_awaited(database_url)
        worker.pause()

    async def is_settled() -> bool:
        return await money(database, payer) == Money(settled=25)

    await until(is_settled)
    await reap(database, worker.instance_id)
    worker.resume()

    assert await worker.answer() is ResolutionResult.NOW
    assert await money(database, payer) == Money(settled=25)


async def test_an_admission_is_refused_if_its_hold_was_decided_before_its_answer_came(
    database: Database, database_url: str, payer: Payer
) -> None:
    """The hold covers nothing any more, so no backend may be called for it."""
    async with (
        proxied("127.0.0.1", urlsplit(database_url).port or 5432) as proxy,
        working(through(proxy.port, database_url)) as worker,
    ):
        await worker.warm_up(payer)
        proxy.swallow_answers()
        worker.begin(payer.hold(60))

        async def is_held() -> bool:
            return await money(database, payer) == Money(reserved=60)

        await until(is_held)
        worker.pause()
        await reap(database, worker.instance_id)
        await decide(database)
        await proxy.cut()
        proxy.hear_answers()
        await proxy.open()
        worker.resume()

        assert await worker.answer() == "deadline_exceeded"

    await decide(database)
    assert await money(database, payer) == Money(unknown=60)
