"""What an operator decides by hand, and who said so."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.identity.audit_rows import audit_rows
from tests.identity.measures import counted
from tests.ledger.direct_ledger import CREDIT, DirectLedger, open_ledger
from tests.ledger.invariants import assert_conserved
from tests.ledger.money import EXCESS
from tests.ledger.past import days_ago, enter_past
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.ids import GrantId, ProjectKeyId, ReservationId, time_ordered_uuid
from tollhouse.base.money import PicoUsd
from tollhouse.ledger import operations, reaper, service
from tollhouse.ledger.errors import (
    AmountOutOfRange,
    DayNotPast,
    HoldNotFound,
    SpenderNotFound,
)
from tollhouse.ledger.types import Charge, GrantKind, Hold, Resolution, ResolutionResult


@pytest.fixture
async def ledger(org: OrganizationFixture, database_url: str) -> DirectLedger:
    return await open_ledger(org, database_url)


@pytest.fixture
async def unsettled(ledger: DirectLedger) -> Hold:
    hold = await ledger.hold(100)
    await ledger.let_pass(hold, timedelta(seconds=70))
    await reaper.run(ledger.org.database)
    return hold


async def settle(ledger: DirectLedger, hold: Hold, amount: int) -> Resolution:
    async with ledger.org.database.mutation(ledger.org.authority()) as tx:
        return await operations.settle(
            tx,
            hold.reservation_id,
            used=Charge(output_tokens=9),
            amount=PicoUsd(amount),
            reason="the invoice says so",
        )


async def release(ledger: DirectLedger, reservation_id: ReservationId) -> Resolution:
    async with ledger.org.database.mutation(ledger.org.authority()) as tx:
        return await operations.release(tx, reservation_id, reason="it never left")


async def account(ledger: DirectLedger) -> list[int]:
    rows = await ledger.org.database.fetch_all(
        "SELECT settled_pico, reserved_pico, written_off_excess_pico, written_off_unknown_pico"
        " FROM accounts WHERE organization_id = $1",
        ledger.org.organization_id,
    )
    return [int(amount) for amount in rows[0]]


async def decisions(ledger: DirectLedger) -> list[tuple[object, ...]]:
    rows = await ledger.org.database.fetch_all(
        "SELECT kind, reason, actor_type FROM operator_decisions"
    )
    return [tuple(row) for row in rows]


async def test_what_is_unsettled_is_listed(ledger: DirectLedger, unsettled: Hold) -> None:
    async with ledger.org.database.transaction() as tx:
        (found,) = await operations.page_of_unsettled(tx, ledger.org.organization_id, limit=10)

    assert found.reservation_id == unsettled.reservation_id
    assert found.amount_pico_usd == 100
    assert found.model == unsettled.model
    assert found.instance_id == ledger.instance_id


async def test_settling_posts_the_amount_and_returns_the_rest(
    ledger: DirectLedger, unsettled: Hold
) -> None:
    await settle(ledger, unsettled, 60)

    assert await account(ledger) == [60, 0, 0, 0]
    assert await ledger.unsettled() == set()
    assert await ledger.value("SELECT output_tokens FROM cost_daily") == 9
    assert await decisions(ledger) == [("settle", "the invoice says so", "operator")]
    (last, *_) = reversed(await audit_rows(ledger.org))
    assert last["action"] == "ledger.settle"
    assert last["resource_id"] == str(unsettled.reservation_id)
    changed = {change["field"]: change for change in json.loads(last["changes"])}
    assert changed["amount_pico_usd"]["before"] == "100"
    assert changed["charge.request_pico_usd"]["after"] == "60"
    assert "the invoice says so" not in last["changes"]
    await assert_conserved(ledger.org.database)


@pytest.mark.guarantee("I5")
async def test_what_exceeds_the_hold_is_not_charged(ledger: DirectLedger, unsettled: Hold) -> None:
    resolution = await settle(ledger, unsettled, 130)

    assert resolution.excess_pico_usd == 30
    assert await account(ledger) == [100, 0, 30, 0]
    await assert_conserved(ledger.org.database)


@pytest.mark.guarantee("I5")
@pytest.mark.parametrize("excess", [1, 30])
async def test_what_the_house_bears_is_told_and_counted(
    ledger: DirectLedger, unsettled: Hold, caplog: pytest.LogCaptureFixture, excess: int
) -> None:
    before = counted(EXCESS)

    operations.record_operator_cost(await settle(ledger, unsettled, 100 + excess))

    assert counted(EXCESS) - before == excess
    (line,) = [vars(record) for record in caplog.records if record.msg == "charge_exceeds_hold"]
    assert line["reservation_id"] == str(unsettled.reservation_id)
    assert line["amount_pico_usd"] == excess


async def test_what_fits_the_hold_is_not_told(
    ledger: DirectLedger, unsettled: Hold, caplog: pytest.LogCaptureFixture
) -> None:
    operations.record_operator_cost(await settle(ledger, unsettled, 100))

    assert "charge_exceeds_hold" not in caplog.messages


async def test_releasing_gives_the_hold_back(ledger: DirectLedger, unsettled: Hold) -> None:
    await release(ledger, unsettled.reservation_id)

    assert await account(ledger) == [0, 0, 0, 0]
    assert await decisions(ledger) == [("release", "it never left", "operator")]
    assert await ledger.post(unsettled, 10) is ResolutionResult.BEFORE
    await assert_conserved(ledger.org.database)


async def test_a_decision_that_was_made_cannot_be_made_again(
    ledger: DirectLedger, unsettled: Hold
) -> None:
    await ledger.tamper("UPDATE unsettled_holds SET decide_at = now()")
    await reaper.run(ledger.org.database)

    with pytest.raises(HoldNotFound):
        await settle(ledger, unsettled, 60)
    with pytest.raises(HoldNotFound):
        await release(ledger, unsettled.reservation_id)

    assert await account(ledger) == [0, 0, 0, 100]
    assert await decisions(ledger) == []


async def test_a_request_under_way_cannot_be_decided(ledger: DirectLedger) -> None:
    hold = await ledger.hold(100)

    with pytest.raises(HoldNotFound):
        await release(ledger, hold.reservation_id)


async def test_another_organizations_reservation_cannot_be_decided(
    ledger: DirectLedger, unsettled: Hold, other_org: OrganizationFixture
) -> None:
    other = await open_ledger(other_org, ledger.url)

    with pytest.raises(HoldNotFound):
        await release(other, unsettled.reservation_id)

    assert await ledger.unsettled() == {unsettled.reservation_id}


@pytest.mark.parametrize("amount", [-1, 2**63])
async def test_an_amount_that_no_entry_can_hold_is_refused(
    ledger: DirectLedger, unsettled: Hold, amount: int
) -> None:
    with pytest.raises(AmountOutOfRange):
        await settle(ledger, unsettled, amount)
    with pytest.raises(AmountOutOfRange):
        await enter_past(ledger, days_ago(3), amount)


async def test_past_usage_is_credit_and_charge_at_once(ledger: DirectLedger) -> None:
    before = await available(ledger)

    resolution = await enter_past(ledger, days_ago(100), 2_000_000)

    assert await available(ledger) == before
    assert (
        await ledger.value("SELECT settled_pico FROM accounts WHERE settled_pico > 0") == 2_000_000
    )
    assert await ledger.value("SELECT bool_and(is_backfill) FROM ledger_entries") is True
    assert await ledger.value("SELECT amount_pico FROM credit_grants WHERE kind = 'backfill'") == (
        2_000_000
    )
    assert await ledger.value("SELECT day FROM cost_daily") == days_ago(100)
    assert await decisions(ledger) == [("backfill", "a test", "operator")]
    (last, *_) = reversed(await audit_rows(ledger.org))
    assert last["action"] == "ledger.backfill"
    assert last["resource_id"] == str(resolution.reservation_id)
    await assert_conserved(ledger.org.database)


async def test_past_usage_is_entered_where_more_is_held_than_there_is_credit(
    ledger: DirectLedger,
) -> None:
    await ledger.hold(100)
    async with ledger.org.database.mutation(ledger.org.authority()) as tx:
        await service.grant(
            tx,
            grant_id=GrantId(time_ordered_uuid()),
            kind=GrantKind.CORRECTION,
            amount=PicoUsd(10 - CREDIT),
            reason="too much",
        )

    await enter_past(ledger, days_ago(100), 2_000_000)

    assert await account(ledger) == [2_000_000, 100, 0, 0]
    assert await available(ledger) == 10 - 100
    await assert_conserved(ledger.org.database)


async def available(ledger: DirectLedger) -> object:
    return await ledger.value(
        "SELECT credit_pico - settled_pico - reserved_pico FROM accounts WHERE credit_pico > 0"
    )


async def test_past_usage_counts_against_a_cap_that_it_crosses(ledger: DirectLedger) -> None:
    await ledger.post(await ledger.hold(10), 10)
    await ledger.tamper(
        "INSERT INTO spending_caps SELECT organization_id, 'organization', organization_id,"
        " 'lifetime', 50, 80 FROM accounts WHERE credit_pico > 0"
    )
    await ledger.tamper(
        "UPDATE spending_counters SET limit_pico = 50, ceiling_pico = 50, alert_pico = 40"
        " WHERE scope = 'organization' AND window_start = '-infinity'"
    )

    await enter_past(ledger, days_ago(100), 500)

    await assert_conserved(ledger.org.database)
    assert (
        await ledger.value(
            "SELECT settled_pico FROM spending_counters"
            " WHERE scope = 'organization' AND limit_pico = 50"
        )
        == 510
    )


async def test_free_past_usage_needs_no_credit(ledger: DirectLedger) -> None:
    await enter_past(ledger, days_ago(0), 0)

    assert await ledger.value("SELECT count(*) FROM credit_grants WHERE kind = 'backfill'") == 0
    assert await ledger.value("SELECT requests FROM cost_daily") == 1
    await assert_conserved(ledger.org.database)


async def test_a_key_of_another_project_did_not_use_this_one(ledger: DirectLedger) -> None:
    other = await ledger.org.project()

    with pytest.raises(SpenderNotFound):
        await enter_past(replace(ledger, project_id=other.id), days_ago(1), 1)


async def test_usage_to_come_and_unknown_keys_are_refused(ledger: DirectLedger) -> None:
    stranger = DirectLedger(
        ledger.org,
        ledger.url,
        ledger.project_id,
        ProjectKeyId(time_ordered_uuid()),
        ledger.instance_id,
    )

    with pytest.raises(DayNotPast):
        await enter_past(ledger, days_ago(-1), 1)
    with pytest.raises(SpenderNotFound):
        await enter_past(stranger, days_ago(1), 1)

    await assert_conserved(ledger.org.database)
