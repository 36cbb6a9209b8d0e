"""An unsettled hold whose worker had counted something is charged that, and never a zero."""

import asyncio

import pytest

from tests.ledger.invariants import assert_conserved
from tests.ledger.test_reaper import OVERDUE, balance, let_decision_come
from tests.ledger.till import Till, open_till
from tests.support.world import World
from tollhouse.base.money import PicoUsd
from tollhouse.base.tasks import Tasks
from tollhouse.ledger import provable, reaper
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.types import Charge, Hold, Resolution, ResolutionKind, Resolved

COUNTED = Charge(
    input_tokens=3, output_tokens=7, input_pico_usd=PicoUsd(10), output_pico_usd=PicoUsd(30)
)


@pytest.fixture
async def till(world: World, database_url: str) -> Till:
    return await open_till(world, database_url)


def minimum_of(hold: Hold) -> Resolution:
    return Resolution(
        organization_id=hold.organization_id,
        reservation_id=hold.reservation_id,
        admitted_day=hold.admitted_day,
        kind=ResolutionKind.ABSORB,
        charge=COUNTED,
        delivered_tokens=7,
        is_estimated=True,
    )


async def test_it_is_posted_when_nothing_more_is_learned(till: Till) -> None:
    hold = await till.hold(100)

    await provable.record(till.world.database, minimum_of(hold))
    assert await till.unsettled() == {hold.reservation_id}
    assert await balance(till) == (0, 100, 0)
    await let_decision_come(till)
    await reaper.run(till.world.database)

    assert await balance(till) == (40, 0, 60)
    stored = await till.world.database.fetch_all(
        "SELECT output_tokens, delivered_tokens, is_estimated, operator_pays"
        "  FROM ledger_entries WHERE phase = 1"
    )
    assert [tuple(row) for row in stored] == [(7, 7, True, None)]
    await assert_conserved(till.world.database)


async def test_evidence_that_comes_later_wins(till: Till) -> None:
    hold = await till.hold(100)
    await provable.record(till.world.database, minimum_of(hold))

    assert await till.post(hold, 90) is Resolved.NOW

    assert await till.unsettled() == set()
    assert await balance(till) == (90, 0, 0)


async def test_it_is_kept_by_a_hold_that_was_marked_before(till: Till) -> None:
    hold = await till.hold(100)
    await till.let_pass(hold, OVERDUE)
    await reaper.run(till.world.database)

    await provable.record(till.world.database, minimum_of(hold))
    await let_decision_come(till)
    await reaper.run(till.world.database)

    assert await balance(till) == (40, 0, 60)


async def test_a_resolved_hold_is_not_marked_again(till: Till) -> None:
    hold = await till.hold(100)
    await till.post(hold, 50)

    await provable.record(till.world.database, minimum_of(hold))

    assert await till.unsettled() == set()


async def test_the_batcher_stores_it_while_the_account_is_locked_elsewhere(till: Till) -> None:
    hold = await till.hold(100)
    tasks = Tasks()
    batcher = Batcher(till.world.database, tasks, till.instance_id, own_batches_max=1)
    async with till.world.database.transaction() as tx:
        await tx.execute(
            "SELECT 1 FROM accounts WHERE organization_id = $1 FOR UPDATE", hold.organization_id
        )
        batcher.leave_unsettled(minimum_of(hold))
        await asyncio.sleep(0)
        assert await till.unsettled() == set()

    await tasks.drain(deadline_seconds=30)

    assert await till.unsettled() == {hold.reservation_id}
