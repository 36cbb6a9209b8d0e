"""A worker dies, or its line breaks, at each point of a request's way through the ledger.

Afterwards the reaper comes, and every pico-dollar is where the entries say.
"""

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from tests.faults.recovery import LOCK_ACCOUNT, Money, decide, money, reap, through
from tests.faults.worker import Point, Worker, working
from tests.identity.proxy import Proxy, proxied
from tests.identity.waiting import holding, until, until_a_lock_is_awaited
from tests.ledger.money import Payer, new_payer, posted
from tollhouse.ledger.types import ResolutionResult
from tollhouse.storage.database import Database

CREDIT = 100


@pytest.fixture
async def payer(database: Database) -> Payer:
    return await new_payer(database, credit=CREDIT)


@pytest.fixture
async def worker(database_url: str) -> AsyncIterator[Worker]:
    async with working(database_url) as running:
        yield running


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[Proxy]:
    async with proxied("127.0.0.1", urlsplit(database_url).port or 5432) as opened:
        yield opened


@pytest.fixture
async def far_worker(database_url: str, payer: Payer, proxy: Proxy) -> AsyncIterator[Worker]:
    """One whose line to the database can be cut."""
    async with working(through(proxy.port, database_url)) as running:
        await running.warm_up(payer)
        yield running


async def until_money(database: Database, payer: Payer, expected: Money) -> None:
    async def is_so() -> bool:
        return await money(database, payer) == expected

    await until(is_so)


async def assert_all_is_free(database: Database, database_url: str, payer: Payer) -> None:
    async with working(database_url) as another:
        assert await another.do(payer.hold(CREDIT)) == "admitted"


async def test_1_death_before_the_admission_is_sent_leaves_nothing(
    database: Database, database_url: str, payer: Payer, worker: Worker
) -> None:
    worker.must_die_at(Point.BEFORE_ADMISSION)
    worker.begin(payer.hold(60))
    await worker.has_died()

    await reap(database, worker.instance_id)

    assert await money(database, payer) == Money()
    await assert_all_is_free(database, database_url, payer)


async def test_1_death_with_its_connection_before_the_commit_leaves_nothing(
    database: Database, database_url: str, payer: Payer, worker: Worker
) -> None:
    async with holding(database_url, LOCK_ACCOUNT, payer.organization_id):
        worker.begin(payer.hold(60))
        await until_a_lock_is_awaited(database_url)
        await worker.die()
        await database.fetch_all(
            """
            SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock'
            """
        )

    await reap(database, worker.instance_id)

    assert await money(database, payer) == Money()
    await assert_all_is_free(database, database_url, payer)


async def test_2_an_admission_whose_answer_was_lost_is_asked_for_again(
    database: Database, payer: Payer, far_worker: Worker, proxy: Proxy
) -> None:
    hold = payer.hold(60)
    proxy.swallow_answers()
    far_worker.begin(hold)
    await until_money(database, payer, Money(reserved=60))
    await proxy.cut()
    proxy.hear_answers()
    await proxy.open()

    assert await far_worker.answer() == "admitted"

    assert await money(database, payer) == Money(reserved=60)
    assert await far_worker.do(posted(hold, 25)) is ResolutionResult.NOW
    await reap(database, far_worker.instance_id)
    assert await money(database, payer) == Money(settled=25)


async def test_2_death_after_an_admission_whose_answer_was_lost_leaves_it_held(
    database: Database, database_url: str, payer: Payer, far_worker: Worker, proxy: Proxy
) -> None:
    proxy.swallow_answers()
    far_worker.begin(payer.hold(60))
    await until_money(database, payer, Money(reserved=60))
    await far_worker.die()

    await assert_held_then_written_off(database, database_url, payer, far_worker)


async def test_2_an_admission_that_commits_after_its_worker_died_stays_held(
    database: Database, database_url: str, payer: Payer, worker: Worker
) -> None:
    async with holding(database_url, LOCK_ACCOUNT, payer.organization_id):
        worker.begin(payer.hold(60))
        await until_a_lock_is_awaited(database_url)
        await worker.die()
    await until_money(database, payer, Money(reserved=60))

    await assert_held_then_written_off(database, database_url, payer, worker)


@pytest.mark.parametrize("point", [Point.ADMITTED, Point.BEFORE_SETTLEMENT])
async def test_3_and_4_death_between_admission_and_settlement_leaves_it_held(
    database: Database, database_url: str, payer: Payer, worker: Worker, point: Point
) -> None:
    hold = payer.hold(60)
    worker.must_die_at(point)
    if point is Point.ADMITTED:
        worker.begin(hold)
    else:
        assert await worker.do(hold) == "admitted"
        worker.begin(posted(hold, 25))
    await worker.has_died()

    await assert_held_then_written_off(database, database_url, payer, worker)


async def test_4_a_settlement_that_commits_after_its_worker_died_counts(
    database: Database, database_url: str, payer: Payer, worker: Worker
) -> None:
    hold = payer.hold(60)
    assert await worker.do(hold) == "admitted"
    async with holding(database_url, LOCK_ACCOUNT, payer.organization_id):
        worker.begin(posted(hold, 25))
        await until_a_lock_is_awaited(database_url)
        await worker.die()
    await until_money(database, payer, Money(settled=25))

    await reap(database, worker.instance_id)

    assert await money(database, payer) == Money(settled=25)


async def test_5_a_settlement_whose_answer_was_lost_counts_once(
    database: Database, payer: Payer, far_worker: Worker, proxy: Proxy
) -> None:
    hold = payer.hold(60)
    assert await far_worker.do(hold) == "admitted"
    proxy.swallow_answers()
    far_worker.begin(posted(hold, 25))
    await until_money(database, payer, Money(settled=25))
    await proxy.cut()
    proxy.hear_answers()
    await proxy.open()

    assert await far_worker.answer() is ResolutionResult.BEFORE

    await reap(database, far_worker.instance_id)
    assert await money(database, payer) == Money(settled=25)


async def test_5_death_after_the_settlement_leaves_it_settled(
    database: Database, payer: Payer, worker: Worker
) -> None:
    hold = payer.hold(60)
    assert await worker.do(hold) == "admitted"
    worker.must_die_at(Point.SETTLED)
    worker.begin(posted(hold, 25))
    await worker.has_died()

    await reap(database, worker.instance_id)
    await decide(database)

    assert await money(database, payer) == Money(settled=25)


async def assert_held_then_written_off(
    database: Database, database_url: str, payer: Payer, dead: Worker
) -> None:
    """Nobody else may spend what may have been billed, until it is decided."""
    await reap(database, dead.instance_id)
    assert await money(database, payer) == Money(reserved=60, unsettled=60)
    async with working(database_url) as another:
        assert await another.do(payer.hold(CREDIT)) == "credit_balance_exhausted"
        await decide(database)
        assert await money(database, payer) == Money(unknown=60)
        assert await another.do(payer.hold(CREDIT)) == "admitted"
