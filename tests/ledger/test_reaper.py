"""Holds that nobody settles: unsettled first, decided later, and evidence wins until then."""

import asyncio
from datetime import timedelta

import pytest

from tests.ledger.invariants import assert_conserved
from tests.ledger.till import Till, open_till
from tests.support.world import World
from tollhouse.base.ids import InstanceId, time_ordered_uuid
from tollhouse.ledger import reaper
from tollhouse.ledger.open_holds import READ_MAX
from tollhouse.ledger.types import Resolved

OVERDUE = timedelta(seconds=70)
DEAD = timedelta(seconds=45)
ALIVE = timedelta(0)


@pytest.fixture
async def till(world: World, database_url: str) -> Till:
    return await open_till(world, database_url)


async def balance(till: Till) -> tuple[int, int, int]:
    """Settled, reserved, and absorbed because unknown."""
    rows = await till.world.database.fetch_all(
        "SELECT settled_pico, reserved_pico, absorbed_unknown_pico FROM accounts"
        " WHERE organization_id = $1",
        till.world.organization_id,
    )
    settled, reserved, unknown = rows[0]
    return int(settled), int(reserved), int(unknown)


async def let_decision_come(till: Till) -> None:
    await till.tamper("UPDATE unsettled_holds SET decide_at = clock_timestamp()")


async def test_a_hold_past_its_deadline_is_unsettled_and_still_held(till: Till) -> None:
    late, in_time, settled = await till.hold(100), await till.hold(200), await till.hold(300)
    await till.post(settled, 30)
    await till.let_pass(late, OVERDUE)
    await till.let_pass(settled, OVERDUE)

    await reaper.run(till.world.database)

    assert await till.unsettled() == {late.reservation_id}
    assert await balance(till) == (30, 300, 0)
    assert await till.void(in_time) is Resolved.NOW
    await assert_conserved(till.world.database)


async def test_a_hold_is_given_a_minute_after_its_deadline(till: Till) -> None:
    hold = await till.hold()
    await till.let_pass(hold, timedelta(seconds=20))

    await reaper.run(till.world.database)

    assert await till.unsettled() == set()


async def test_a_late_settlement_of_an_unsettled_hold_wins(till: Till) -> None:
    hold = await till.hold(100)
    await till.let_pass(hold, OVERDUE)
    await reaper.run(till.world.database)

    assert await till.post(hold, 40) is Resolved.NOW

    assert await till.unsettled() == set()
    await reaper.run(till.world.database)
    assert await balance(till) == (40, 0, 0)
    await assert_conserved(till.world.database)


async def test_a_hold_of_a_backend_that_bills_nothing_by_itself_is_decided_in_the_same_round(
    till: Till,
) -> None:
    hold = await till.hold(100, bills_without_answer=False)
    await till.let_pass(hold, OVERDUE)

    await reaper.run(till.world.database)

    assert await balance(till) == (0, 0, 100)


async def test_a_decision_returns_the_hold_posts_nothing_and_is_final(till: Till) -> None:
    hold = await till.hold(100)
    await till.let_pass(hold, OVERDUE)
    await reaper.run(till.world.database)
    await let_decision_come(till)

    await reaper.run(till.world.database)

    assert await till.unsettled() == set()
    assert await balance(till) == (0, 0, 100)
    assert await till.post(hold, 40) is Resolved.BEFORE
    assert await balance(till) == (0, 0, 100)
    await assert_conserved(till.world.database)


@pytest.mark.parametrize(
    ("bills_without_answer", "decided_after"),
    [(False, timedelta(seconds=60)), (True, timedelta(hours=24))],
)
async def test_a_decision_waits_longer_for_a_backend_that_bills_without_an_answer(
    till: Till, bills_without_answer: bool, decided_after: timedelta
) -> None:
    hold = await till.hold(bills_without_answer=bills_without_answer)
    await till.let_die(till.instance_id, DEAD)

    await reaper.run(till.world.database)

    decide_at = await till.value("SELECT decide_at FROM unsettled_holds")
    assert decide_at == hold.deadline_at + decided_after


async def test_the_holds_of_a_dead_worker_are_unsettled_before_their_deadline(till: Till) -> None:
    dead, alive = InstanceId(time_ordered_uuid()), InstanceId(time_ordered_uuid())
    await till.let_die(dead, DEAD)
    await till.let_die(alive, ALIVE)
    orphan, settled = await till.hold(instance_id=dead), await till.hold(instance_id=dead)
    await till.hold(instance_id=alive)
    await till.void(settled)

    await reaper.run(till.world.database)

    assert await till.unsettled() == {orphan.reservation_id}
    await assert_conserved(till.world.database)


async def test_a_worker_that_comes_back_settles_what_was_marked_meanwhile(till: Till) -> None:
    paused = till.instance_id
    await till.let_die(paused, DEAD)
    hold = await till.hold(100)
    await reaper.run(till.world.database)
    assert await till.unsettled() == {hold.reservation_id}

    await till.let_die(paused, ALIVE)
    assert await till.post(hold, 60) is Resolved.NOW
    later = await till.hold()
    await reaper.run(till.world.database)
    assert await till.unsettled() == set()

    await till.tamper("UPDATE reaped_instances SET reaped_at = reaped_at - interval '1 hour'")
    await till.let_die(paused, DEAD)
    await reaper.run(till.world.database)
    assert await till.unsettled() == {later.reservation_id}
    await assert_conserved(till.world.database)


async def test_a_dead_worker_is_looked_at_once_and_then_forgotten(till: Till) -> None:
    await till.let_die(till.instance_id, DEAD)
    await reaper.run(till.world.database)
    await till.hold()
    await reaper.run(till.world.database)

    assert await till.unsettled() == set()
    assert await till.value("SELECT count(*) FROM reaped_instances") == 1

    await till.tamper("DELETE FROM instances")
    await till.let_die(InstanceId(time_ordered_uuid()), DEAD)
    await reaper.run(till.world.database)
    assert await till.value("SELECT count(*) FROM reaped_instances") == 1


async def test_reapers_that_run_at_once_decide_each_hold_once(till: Till) -> None:
    holds = [await till.hold(100) for _ in range(20)]
    for hold in holds:
        await till.let_pass(hold, OVERDUE)
    database = till.world.database

    await asyncio.gather(*(reaper.run(database) for _ in range(4)))
    assert await till.unsettled() == {hold.reservation_id for hold in holds}
    await let_decision_come(till)
    await asyncio.gather(*(reaper.run(database) for _ in range(4)))

    assert await balance(till) == (0, 0, 2_000)
    await assert_conserved(database)


async def test_every_hold_is_found_however_many_there_are(till: Till) -> None:
    holds = [till.new_hold(10) for _ in range(READ_MAX + 100)]
    await till.admit(holds)
    for hold in holds[:READ_MAX:100]:
        await till.void(hold)
    # All at one instant, so that only the second part of the order tells them apart.
    await till.tamper("UPDATE ledger_entries SET deadline_at = now() - interval '70 seconds'")

    await reaper.run(till.world.database)

    assert len(await till.unsettled()) == READ_MAX + 90
    await let_decision_come(till)
    await reaper.run(till.world.database)
    assert await balance(till) == (0, 0, 10 * (READ_MAX + 90))


async def test_an_account_that_stays_locked_stops_nobody_else_and_is_not_forgotten(
    till: Till, other_world: World
) -> None:
    other = await open_till(other_world, till.url)
    locked, free = await till.hold(), await other.hold()
    await till.let_pass(locked, OVERDUE)
    await till.let_pass(free, OVERDUE)

    async with till.connection() as connection, connection.transaction():
        await connection.execute(
            "SELECT FROM accounts WHERE organization_id = $1 FOR UPDATE", till.world.organization_id
        )
        await reaper.run(till.world.database)
        assert await till.unsettled() == {free.reservation_id}
    await reaper.run(till.world.database)

    assert await till.unsettled() == {locked.reservation_id, free.reservation_id}
    await assert_conserved(till.world.database)


@pytest.mark.tampers
async def test_a_decision_that_the_database_refuses_harms_no_other(till: Till) -> None:
    poisoned, sound = await till.hold(100), await till.hold(100)
    for hold in (poisoned, sound):
        await till.let_pass(hold, OVERDUE)
    # More than the account holds in all, so that it cannot be taken off.
    await till.tamper(
        "UPDATE ledger_entries SET held_pico = 1000 WHERE reservation_id = $1",
        poisoned.reservation_id,
    )

    await reaper.run(till.world.database)
    await let_decision_come(till)
    await reaper.run(till.world.database)

    assert await till.unsettled() == {poisoned.reservation_id}
    assert await balance(till) == (0, 100, 100)
