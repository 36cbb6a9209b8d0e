"""Holds that nobody settles: unsettled first, decided later, and evidence wins until then."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tests.ledger.direct_ledger import DirectLedger, open_ledger
from tests.ledger.invariants import assert_conserved
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.ids import InstanceId, time_ordered_uuid
from tollhouse.ledger import reaper
from tollhouse.ledger.open_holds import READ_MAX
from tollhouse.ledger.reaper import ReaperRun
from tollhouse.ledger.types import ResolutionResult

OVERDUE = timedelta(seconds=70)
DEAD = timedelta(seconds=45)
ALIVE = timedelta(0)


@pytest.fixture
async def ledger(org: OrganizationFixture, database_url: str) -> DirectLedger:
    return await open_ledger(org, database_url)


async def balance(ledger: DirectLedger) -> tuple[int, int, int]:
    """Settled, reserved, and absorbed because unknown."""
    rows = await ledger.org.database.fetch_all(
        "SELECT settled_pico, reserved_pico, written_off_unknown_pico FROM accounts"
        " WHERE organization_id = $1",
        ledger.org.organization_id,
    )
    settled, reserved, unknown = rows[0]
    return int(settled), int(reserved), int(unknown)


async def let_decision_come(ledger: DirectLedger) -> None:
    await ledger.tamper("UPDATE unsettled_holds SET decide_at = clock_timestamp()")


@pytest.mark.guarantee("I9")
async def test_a_hold_past_its_deadline_is_unsettled_and_still_held(ledger: DirectLedger) -> None:
    late, in_time, settled = await ledger.hold(100), await ledger.hold(200), await ledger.hold(300)
    await ledger.post(settled, 30)
    await ledger.let_pass(late, OVERDUE)
    await ledger.let_pass(settled, OVERDUE)

    await reaper.run(ledger.org.database)

    assert await ledger.unsettled() == {late.reservation_id}
    assert await balance(ledger) == (30, 300, 0)
    assert await ledger.void(in_time) is ResolutionResult.NOW
    await assert_conserved(ledger.org.database)


async def test_a_hold_is_given_a_minute_after_its_deadline(ledger: DirectLedger) -> None:
    hold = await ledger.hold()
    await ledger.let_pass(hold, timedelta(seconds=20))

    await reaper.run(ledger.org.database)

    assert await ledger.unsettled() == set()


@pytest.mark.parametrize(
    ("writing_seconds", "overdue_seconds"), [(None, 60), (0, 60), (59, 60), (61, 61), (500, 120)]
)
def test_no_deadline_is_checked_whose_holds_may_still_appear(
    writing_seconds: int | None, overdue_seconds: int
) -> None:
    """A transaction stores no hold with a deadline before its own start."""
    now = datetime(2026, 11, 16, tzinfo=UTC)
    began = None if writing_seconds is None else now - timedelta(seconds=writing_seconds)

    begun = ReaperRun(now=now, checked_until=now, oldest_writer_at=began)

    assert begun.check_until == now - timedelta(seconds=overdue_seconds)


async def test_each_hold_is_looked_at_once(ledger: DirectLedger) -> None:
    hold = await ledger.hold()
    await ledger.let_pass(hold, timedelta(seconds=61))
    await reaper.run(ledger.org.database)
    assert await ledger.unsettled() == {hold.reservation_id}
    await ledger.tamper("DELETE FROM unsettled_holds")

    await reaper.run(ledger.org.database)

    assert await ledger.unsettled() == set()


async def test_a_commit_that_stalls_holds_the_search_back(ledger: DirectLedger) -> None:
    async with ledger.connection() as connection, connection.transaction():
        began = await connection.fetchval("SELECT now()")
        await connection.execute("SELECT pg_current_xact_id()")

        assert (await reaper.begin(ledger.org.database)).oldest_writer_at == began


async def test_a_late_settlement_of_an_unsettled_hold_wins(ledger: DirectLedger) -> None:
    hold = await ledger.hold(100)
    await ledger.let_pass(hold, OVERDUE)
    await reaper.run(ledger.org.database)

    assert await ledger.post(hold, 40) is ResolutionResult.NOW

    assert await ledger.unsettled() == set()
    await reaper.run(ledger.org.database)
    assert await balance(ledger) == (40, 0, 0)
    await assert_conserved(ledger.org.database)


async def test_a_hold_of_a_backend_that_bills_nothing_by_itself_is_decided_in_the_same_round(
    ledger: DirectLedger,
) -> None:
    hold = await ledger.hold(100, bills_without_answer=False)
    await ledger.let_pass(hold, OVERDUE)

    await reaper.run(ledger.org.database)

    assert await balance(ledger) == (0, 0, 100)


async def test_a_decision_returns_the_hold_posts_nothing_and_is_final(ledger: DirectLedger) -> None:
    hold = await ledger.hold(100)
    await ledger.let_pass(hold, OVERDUE)
    await reaper.run(ledger.org.database)
    await let_decision_come(ledger)

    await reaper.run(ledger.org.database)

    assert await ledger.unsettled() == set()
    assert await balance(ledger) == (0, 0, 100)
    assert await ledger.post(hold, 40) is ResolutionResult.BEFORE
    assert await balance(ledger) == (0, 0, 100)
    await assert_conserved(ledger.org.database)


@pytest.mark.parametrize(
    ("bills_without_answer", "decided_after"),
    [(False, timedelta(seconds=60)), (True, timedelta(hours=24))],
)
async def test_a_decision_waits_longer_for_a_backend_that_bills_without_an_answer(
    ledger: DirectLedger, bills_without_answer: bool, decided_after: timedelta
) -> None:
    hold = await ledger.hold(bills_without_answer=bills_without_answer)
    await ledger.let_die(ledger.instance_id, DEAD)

    await reaper.run(ledger.org.database)

    decide_at = await ledger.value("SELECT decide_at FROM unsettled_holds")
    assert decide_at == hold.deadline_at + decided_after


@pytest.mark.guarantee("I9")
async def test_the_holds_of_a_dead_worker_are_unsettled_before_their_deadline(
    ledger: DirectLedger,
) -> None:
    dead, alive = InstanceId(time_ordered_uuid()), InstanceId(time_ordered_uuid())
    await ledger.let_die(dead, DEAD)
    await ledger.let_die(alive, ALIVE)
    orphan, settled = await ledger.hold(instance_id=dead), await ledger.hold(instance_id=dead)
    await ledger.hold(instance_id=alive)
    await ledger.void(settled)

    await reaper.run(ledger.org.database)

    assert await ledger.unsettled() == {orphan.reservation_id}
    await assert_conserved(ledger.org.database)


async def test_a_worker_that_comes_back_settles_what_was_marked_meanwhile(
    ledger: DirectLedger,
) -> None:
    paused = ledger.instance_id
    await ledger.let_die(paused, DEAD)
    hold = await ledger.hold(100)
    await reaper.run(ledger.org.database)
    assert await ledger.unsettled() == {hold.reservation_id}

    await ledger.let_die(paused, ALIVE)
    assert await ledger.post(hold, 60) is ResolutionResult.NOW
    later = await ledger.hold()
    await reaper.run(ledger.org.database)
    assert await ledger.unsettled() == set()

    await ledger.tamper("UPDATE reaped_instances SET reaped_at = reaped_at - interval '1 hour'")
    await ledger.let_die(paused, DEAD)
    await reaper.run(ledger.org.database)
    assert await ledger.unsettled() == {later.reservation_id}
    await assert_conserved(ledger.org.database)


async def test_a_dead_worker_is_looked_at_once_and_then_forgotten(ledger: DirectLedger) -> None:
    await ledger.let_die(ledger.instance_id, DEAD)
    await reaper.run(ledger.org.database)
    await ledger.hold()
    await reaper.run(ledger.org.database)

    assert await ledger.unsettled() == set()
    assert await ledger.value("SELECT count(*) FROM reaped_instances") == 1

    await ledger.tamper("DELETE FROM instances")
    await ledger.let_die(InstanceId(time_ordered_uuid()), DEAD)
    await reaper.run(ledger.org.database)
    assert await ledger.value("SELECT count(*) FROM reaped_instances") == 1


async def test_reapers_that_run_at_once_decide_each_hold_once(ledger: DirectLedger) -> None:
    holds = [await ledger.hold(100) for _ in range(20)]
    for hold in holds:
        await ledger.let_pass(hold, OVERDUE)
    database = ledger.org.database

    await asyncio.gather(*(reaper.run(database) for _ in range(4)))
    assert await ledger.unsettled() == {hold.reservation_id for hold in holds}
    await let_decision_come(ledger)
    await asyncio.gather(*(reaper.run(database) for _ in range(4)))

    assert await balance(ledger) == (0, 0, 2_000)
    await assert_conserved(database)


async def test_every_hold_is_found_however_many_there_are(ledger: DirectLedger) -> None:
    holds = [ledger.new_hold(10) for _ in range(READ_MAX + 100)]
    await ledger.admit(holds)
    for hold in holds[:READ_MAX:100]:
        await ledger.void(hold)
    # All at one instant, so that only the second part of the order tells them apart.
    await ledger.tamper("UPDATE ledger_entries SET deadline_at = now() - interval '70 seconds'")

    await reaper.run(ledger.org.database)

    assert len(await ledger.unsettled()) == READ_MAX + 90
    await let_decision_come(ledger)
    await reaper.run(ledger.org.database)
    assert await balance(ledger) == (0, 0, 10 * (READ_MAX + 90))


async def test_an_account_that_stays_locked_stops_nobody_else_and_is_not_forgotten(
    ledger: DirectLedger, other_org: OrganizationFixture
) -> None:
    other = await open_ledger(other_org, ledger.url)
    locked, free = await ledger.hold(), await other.hold()
    await ledger.let_pass(locked, OVERDUE)
    await ledger.let_pass(free, OVERDUE)

    async with ledger.connection() as connection, connection.transaction():
        await connection.execute(
            "SELECT FROM accounts WHERE organization_id = $1 FOR UPDATE", ledger.org.organization_id
        )
        await reaper.run(ledger.org.database)
        assert await ledger.unsettled() == {free.reservation_id}
    await reaper.run(ledger.org.database)

    assert await ledger.unsettled() == {locked.reservation_id, free.reservation_id}
    await assert_conserved(ledger.org.database)


@pytest.mark.tampers
async def test_a_decision_that_the_database_refuses_harms_no_other(ledger: DirectLedger) -> None:
    poisoned, sound = await ledger.hold(100), await ledger.hold(100)
    for hold in (poisoned, sound):
        await ledger.let_pass(hold, OVERDUE)
    # More than the account holds in all, so that it cannot be taken off.
    await ledger.tamper(
        "UPDATE ledger_entries SET held_pico = 1000 WHERE reservation_id = $1",
        poisoned.reservation_id,
    )

    await reaper.run(ledger.org.database)
    await let_decision_come(ledger)
    await reaper.run(ledger.org.database)

    assert await ledger.unsettled() == {poisoned.reservation_id}
    assert await balance(ledger) == (0, 100, 100)
