"""An unsettled hold whose worker had counted something is charged that, and never a zero."""

import asyncio
from dataclasses import replace

import pytest

from tests.ledger.direct_ledger import DirectLedger, open_ledger
from tests.ledger.invariants import assert_conserved
from tests.ledger.test_reaper import OVERDUE, balance, let_decision_come
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.money import PicoUsd
from tollhouse.base.tasks import Tasks
from tollhouse.ledger import provable, reaper
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.types import Charge, Hold, Resolution, ResolutionKind, ResolutionResult

COUNTED = Charge(
    input_tokens=3, output_tokens=7, input_pico_usd=PicoUsd(10), output_pico_usd=PicoUsd(30)
)


@pytest.fixture
async def ledger(org: OrganizationFixture, database_url: str) -> DirectLedger:
    return await open_ledger(org, database_url)


def minimum_of(hold: Hold) -> Resolution:
    return Resolution(
        organization_id=hold.organization_id,
        reservation_id=hold.reservation_id,
        admitted_day=hold.admitted_day,
        kind=ResolutionKind.WRITE_OFF,
        charge=COUNTED,
        delivered_tokens=7,
        is_estimated=True,
    )


async def test_it_is_posted_when_nothing_more_is_learned(ledger: DirectLedger) -> None:
    hold = await ledger.hold(100)

    await provable.record(ledger.org.database, minimum_of(hold))
    assert await ledger.unsettled() == {hold.reservation_id}
    assert await balance(ledger) == (0, 100, 0)
    await let_decision_come(ledger)
    await reaper.run(ledger.org.database)

    assert await balance(ledger) == (40, 0, 60)
    stored = await ledger.org.database.fetch_all(
        "SELECT output_tokens, delivered_tokens, is_estimated, operator_pays"
        "  FROM ledger_entries WHERE phase = 1"
    )
    assert [tuple(row) for row in stored] == [(7, 7, True, None)]
    await assert_conserved(ledger.org.database)


async def test_its_cache_writes_are_counted_beside_minimums_without_them(
    ledger: DirectLedger,
) -> None:
    """Cache writes have a line item of their own; the costs of the input contain them."""
    written = replace(COUNTED, cache_write_tokens=2, cache_write_pico_usd=PicoUsd(6))
    for charge in (written, COUNTED):
        minimum = replace(minimum_of(await ledger.hold(100)), charge=charge)
        await provable.record(ledger.org.database, minimum)

    await let_decision_come(ledger)
    await reaper.run(ledger.org.database)

    for table in ("ledger_entries", "cost_daily", "cost_hourly"):
        (sums,) = await ledger.org.database.fetch_all(
            "SELECT sum(input_tokens), sum(input_pico), sum(cache_write_tokens),"  # noqa: S608 - our own tables
            f" sum(cache_write_pico) FROM {table}"
        )
        assert tuple(map(int, sums)) == (6, 20, 2, 6)
    await assert_conserved(ledger.org.database)


async def test_evidence_that_comes_later_wins(ledger: DirectLedger) -> None:
    hold = await ledger.hold(100)
    await provable.record(ledger.org.database, minimum_of(hold))

    assert await ledger.post(hold, 90) is ResolutionResult.NOW

    assert await ledger.unsettled() == set()
    assert await balance(ledger) == (90, 0, 0)


async def test_it_is_kept_by_a_hold_that_was_marked_before(ledger: DirectLedger) -> None:
    hold = await ledger.hold(100)
    await ledger.let_pass(hold, OVERDUE)
    await reaper.run(ledger.org.database)

    await provable.record(ledger.org.database, minimum_of(hold))
    await let_decision_come(ledger)
    await reaper.run(ledger.org.database)

    assert await balance(ledger) == (40, 0, 60)


async def test_a_resolved_hold_is_not_marked_again(ledger: DirectLedger) -> None:
    hold = await ledger.hold(100)
    await ledger.post(hold, 50)

    await provable.record(ledger.org.database, minimum_of(hold))

    assert await ledger.unsettled() == set()


async def test_the_batcher_stores_it_while_the_account_is_locked_elsewhere(
    ledger: DirectLedger,
) -> None:
    hold = await ledger.hold(100)
    tasks = Tasks()
    batcher = Batcher(ledger.org.database, tasks, ledger.instance_id, own_batches_max=1)
    async with ledger.org.database.transaction() as tx:
        await tx.execute(
            "SELECT 1 FROM accounts WHERE organization_id = $1 FOR UPDATE", hold.organization_id
        )
        batcher.leave_unsettled(minimum_of(hold))
        await asyncio.sleep(0)
        assert await ledger.unsettled() == set()

    await tasks.drain(deadline_seconds=30)

    assert await ledger.unsettled() == {hold.reservation_id}
