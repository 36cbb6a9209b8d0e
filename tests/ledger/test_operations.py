"""What an operator decides by hand, and who said so."""

import json
from datetime import timedelta

import pytest

from tests.identity.audit_rows import audit_rows
from tests.identity.measures import counted
from tests.ledger.invariants import assert_conserved
from tests.ledger.past import days_ago, enter_past
from tests.ledger.till import Till, open_till
from tests.support.world import World
from tollhouse.base.ids import ProjectKeyId, ReservationId, time_ordered_uuid
from tollhouse.base.money import PicoUsd
from tollhouse.ledger import operations, reaper
from tollhouse.ledger.errors import (
    AmountOutOfRange,
    DayNotPast,
    HoldNotFound,
    SpenderNotFound,
)
from tollhouse.ledger.types import Charge, Hold, Resolution, Resolved

EXCESS = 'tollhouse_absorbed_pico_usd_total{account="excess"}'


@pytest.fixture
async def till(world: World, database_url: str) -> Till:
    return await open_till(world, database_url)


@pytest.fixture
async def unsettled(till: Till) -> Hold:
    hold = await till.hold(100)
    await till.let_pass(hold, timedelta(seconds=70))
    await reaper.run(till.world.database)
    return hold


async def settle(till: Till, hold: Hold, amount: int) -> Resolution:
    async with till.world.database.mutation(till.world.authority()) as tx:
        return await operations.settle(
            tx,
            hold.reservation_id,
            used=Charge(output_tokens=9),
            amount=PicoUsd(amount),
            reason="the invoice says so",
        )


async def release(till: Till, reservation_id: ReservationId) -> Resolution:
    async with till.world.database.mutation(till.world.authority()) as tx:
        return await operations.release(tx, reservation_id, reason="it never left")


async def account(till: Till) -> list[int]:
    rows = await till.world.database.fetch_all(
        "SELECT settled_pico, reserved_pico, absorbed_excess_pico, absorbed_unknown_pico"
        " FROM accounts WHERE organization_id = $1",
        till.world.organization_id,
    )
    return [int(amount) for amount in rows[0]]


async def decisions(till: Till) -> list[tuple[object, ...]]:
    rows = await till.world.database.fetch_all(
        "SELECT kind, reason, actor_type FROM operator_decisions"
    )
    return [tuple(row) for row in rows]


async def test_what_is_unsettled_is_listed(till: Till, unsettled: Hold) -> None:
    async with till.world.database.transaction() as tx:
        (found,) = await operations.page_of_unsettled(tx, till.world.organization_id, limit=10)

    assert found.reservation_id == unsettled.reservation_id
    assert found.amount_pico_usd == 100
    assert found.model == unsettled.model
    assert found.instance_id == till.instance_id


async def test_settling_posts_the_amount_and_returns_the_rest(till: Till, unsettled: Hold) -> None:
    await settle(till, unsettled, 60)

    assert await account(till) == [60, 0, 0, 0]
    assert await till.unsettled() == set()
    assert await till.value("SELECT output_tokens FROM cost_daily") == 9
    assert await decisions(till) == [("settle", "the invoice says so", "operator")]
    (last, *_) = reversed(await audit_rows(till.world))
    assert last["action"] == "ledger.settle"
    assert last["resource_id"] == str(unsettled.reservation_id)
    changed = {change["field"]: change for change in json.loads(last["changes"])}
    assert changed["amount_pico_usd"]["before"] == "100"
    assert changed["charge.request_pico_usd"]["after"] == "60"
    assert "the invoice says so" not in last["changes"]
    await assert_conserved(till.world.database)


async def test_what_exceeds_the_hold_is_not_charged(till: Till, unsettled: Hold) -> None:
    resolution = await settle(till, unsettled, 130)

    assert resolution.excess_pico_usd == 30
    assert await account(till) == [100, 0, 30, 0]
    await assert_conserved(till.world.database)


async def test_what_the_house_bears_is_told_and_counted(
    till: Till, unsettled: Hold, caplog: pytest.LogCaptureFixture
) -> None:
    before = counted(EXCESS)

    operations.note_excess(await settle(till, unsettled, 130))

    assert counted(EXCESS) - before == 30
    (line,) = [vars(record) for record in caplog.records if record.msg == "charge_exceeds_hold"]
    assert line["reservation_id"] == str(unsettled.reservation_id)
    assert line["amount_pico_usd"] == 30


async def test_what_fits_the_hold_is_not_told(
    till: Till, unsettled: Hold, caplog: pytest.LogCaptureFixture
) -> None:
    operations.note_excess(await settle(till, unsettled, 100))

    assert "charge_exceeds_hold" not in caplog.messages


async def test_releasing_gives_the_hold_back(till: Till, unsettled: Hold) -> None:
    await release(till, unsettled.reservation_id)

    assert await account(till) == [0, 0, 0, 0]
    assert await decisions(till) == [("release", "it never left", "operator")]
    assert await till.post(unsettled, 10) is Resolved.BEFORE
    await assert_conserved(till.world.database)


async def test_a_decision_that_was_made_cannot_be_made_again(till: Till, unsettled: Hold) -> None:
    await till.tamper("UPDATE unsettled_holds SET decide_at = now()")
    await reaper.run(till.world.database)

    with pytest.raises(HoldNotFound):
        await settle(till, unsettled, 60)
    with pytest.raises(HoldNotFound):
        await release(till, unsettled.reservation_id)

    assert await account(till) == [0, 0, 0, 100]
    assert await decisions(till) == []


async def test_a_request_under_way_cannot_be_decided(till: Till) -> None:
    hold = await till.hold(100)

    with pytest.raises(HoldNotFound):
        await release(till, hold.reservation_id)


async def test_another_organizations_reservation_cannot_be_decided(
    till: Till, unsettled: Hold, other_world: World
) -> None:
    other = await open_till(other_world, till.url)

    with pytest.raises(HoldNotFound):
        await release(other, unsettled.reservation_id)

    assert await till.unsettled() == {unsettled.reservation_id}


@pytest.mark.parametrize("amount", [-1, 2**63])
async def test_an_amount_that_no_entry_can_hold_is_refused(
    till: Till, unsettled: Hold, amount: int
) -> None:
    with pytest.raises(AmountOutOfRange):
        await settle(till, unsettled, amount)
    with pytest.raises(AmountOutOfRange):
        await enter_past(till, days_ago(3), amount)


async def test_past_usage_is_credit_and_charge_at_once(till: Till) -> None:
    before = await available(till)

    resolution = await enter_past(till, days_ago(100), 2_000_000)

    assert await available(till) == before
    assert await till.value("SELECT settled_pico FROM accounts WHERE settled_pico > 0") == 2_000_000
    assert await till.value("SELECT bool_and(is_backfill) FROM ledger_entries") is True
    assert await till.value("SELECT amount_pico FROM credit_grants WHERE kind = 'backfill'") == (
        2_000_000
    )
    assert await till.value("SELECT day FROM cost_daily") == days_ago(100)
    assert await decisions(till) == [("backfill", "a test", "operator")]
    (last, *_) = reversed(await audit_rows(till.world))
    assert last["action"] == "ledger.backfill"
    assert last["resource_id"] == str(resolution.reservation_id)
    await assert_conserved(till.world.database)


async def available(till: Till) -> object:
    return await till.value(
        "SELECT credit_pico - settled_pico - reserved_pico FROM accounts WHERE credit_pico > 0"
    )


async def test_past_usage_counts_against_a_cap_that_it_crosses(till: Till) -> None:
    await till.post(await till.hold(10), 10)
    await till.tamper(
        "INSERT INTO spending_caps SELECT organization_id, 'organization', organization_id,"
        " 'lifetime', 50, 80 FROM accounts WHERE credit_pico > 0"
    )
    await till.tamper(
        "UPDATE spending_counters SET limit_pico = 50, ceiling_pico = 50, alert_pico = 40"
        " WHERE scope = 'organization' AND window_start = '-infinity'"
    )

    await enter_past(till, days_ago(100), 500)

    await assert_conserved(till.world.database)
    assert (
        await till.value(
            "SELECT settled_pico FROM spending_counters"
            " WHERE scope = 'organization' AND limit_pico = 50"
        )
        == 510
    )


async def test_free_past_usage_needs_no_credit(till: Till) -> None:
    await enter_past(till, days_ago(0), 0)

    assert await till.value("SELECT count(*) FROM credit_grants WHERE kind = 'backfill'") == 0
    assert await till.value("SELECT requests FROM cost_daily") == 1
    await assert_conserved(till.world.database)


async def test_usage_to_come_and_unknown_keys_are_refused(till: Till) -> None:
    stranger = Till(
        till.world, till.url, till.project_id, ProjectKeyId(time_ordered_uuid()), till.instance_id
    )

    with pytest.raises(DayNotPast):
        await enter_past(till, days_ago(-1), 1)
    with pytest.raises(SpenderNotFound):
        await enter_past(stranger, days_ago(1), 1)

    await assert_conserved(till.world.database)
