"""What a resolution says about delivery, and who pays, reaches the entry and the reports."""

from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from tests.identity.measures import counted
from tests.ledger.direct_ledger import DirectLedger, open_ledger
from tests.ledger.invariants import assert_conserved
from tests.ledger.money import EXCESS, WAIT_MAX, Payer, new_batcher, new_payer, voided
from tests.ledger.past import days_ago, enter_past
from tests.ledger.sending import Form, send
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.money import PicoUsd
from tollhouse.base.tasks import Tasks
from tollhouse.ledger import operations, partitions, reaper
from tollhouse.ledger.types import (
    Charge,
    Hold,
    OperatorPays,
    Resolution,
    ResolutionKind,
    ResolutionResult,
)
from tollhouse.storage.database import Database

DELIVERED = Charge(output_tokens=7, output_pico_usd=PicoUsd(70))


def paid(rule: OperatorPays) -> int:
    return counted(f'tollhouse_operator_pays_total{{rule="{rule}"}}')


def ended(hold: Hold, **said: Any) -> Resolution:  # noqa: ANN401 - members of a resolution
    return Resolution(
        organization_id=hold.organization_id,
        reservation_id=hold.reservation_id,
        admitted_day=hold.admitted_day,
        kind=ResolutionKind.POST,
        charge=DELIVERED,
        **said,
    )


async def stored(database: Database, hold: Hold) -> tuple[int | None, bool, str | None]:
    """What the resolving entry says."""
    (row,) = await database.fetch_all(
        "SELECT delivered_tokens, is_estimated, operator_pays FROM ledger_entries"
        " WHERE organization_id = $1 AND reservation_id = $2 AND phase = 1",
        hold.organization_id,
        hold.reservation_id,
    )
    return row["delivered_tokens"], row["is_estimated"], row["operator_pays"]


async def estimated(database: Database, payer: Payer) -> list[tuple[int, int]]:
    """Requests and estimated ones, by day and by hour."""
    rows = await database.fetch_all(
        """
        SELECT sum(requests)::int, sum(estimated_requests)::int FROM cost_daily
         WHERE organization_id = $1
         UNION ALL
        SELECT sum(requests)::int, sum(estimated_requests)::int FROM cost_hourly
         WHERE organization_id = $1
        """,
        payer.organization_id,
    )
    return [tuple(row) for row in rows]


async def settle(database: Database, ends: list[Resolution], holds: list[Hold], form: Form) -> None:
    """Admit, and settle in a second statement."""
    works: list[tuple[list[Resolution], list[Hold]]] = [([], holds), (ends, [])]
    for work in works:
        await send(database, *work, form)


@pytest.mark.parametrize("form", Form)
async def test_each_entry_stores_what_its_resolution_says(database: Database, form: Form) -> None:
    payers = [await new_payer(database, credit=1_000_000) for _ in range(3)]
    payers = payers if form is Form.MIXED else payers[:1] * 3
    first, second, third = holds = [payer.hold(1_000) for payer in payers]
    failed = OperatorPays.BACKEND_FAILED
    ends = [
        ended(first, delivered_tokens=7),
        ended(second, delivered_tokens=5, is_estimated=True),
        ended(third, delivered_tokens=None, operator_pays=failed),
    ]

    await settle(database, ends, holds, form)

    assert [await stored(database, hold) for hold in holds] == [
        (7, False, None),
        (5, True, None),
        (None, False, "backend_failed"),
    ]
    assert await estimated(database, payers[1]) == [(1, 1) if form is Form.MIXED else (3, 1)] * 2


@pytest.mark.guarantee("I5")
async def test_an_excess_is_paid_by_the_operator_counted_and_logged(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = Tasks()
    batcher = new_batcher(database, tasks)
    hold = (await new_payer(database, credit=1_000)).hold(70)
    before, excess_before = paid(OperatorPays.ABOVE_HOLD), counted(EXCESS)
    await batcher.admit(hold, wait_max=WAIT_MAX)

    await batcher.resolve(ended(hold, delivered_tokens=9, excess_pico_usd=PicoUsd(20)))

    assert await stored(database, hold) == (9, False, "above_hold")
    assert paid(OperatorPays.ABOVE_HOLD) - before == 1
    assert counted(EXCESS) - excess_before == 20
    assert [record.msg for record in caplog.records if record.levelname == "ERROR"] == [
        "charge_exceeds_hold"
    ]


async def test_a_resolution_that_comes_too_late_is_not_counted(database: Database) -> None:
    tasks = Tasks()
    batcher = new_batcher(database, tasks)
    hold = (await new_payer(database, credit=1_000)).hold(70)
    before = paid(OperatorPays.GATEWAY_STOPPED)
    await batcher.admit(hold, wait_max=WAIT_MAX)
    await batcher.resolve(voided(hold))

    late = await batcher.resolve(ended(hold, operator_pays=OperatorPays.GATEWAY_STOPPED))

    assert late is ResolutionResult.BEFORE
    assert paid(OperatorPays.GATEWAY_STOPPED) == before


@pytest.fixture
async def ledger(org: OrganizationFixture, database_url: str) -> DirectLedger:
    return await open_ledger(org, database_url)


async def unsettled_hold(ledger: DirectLedger) -> Hold:
    hold = await ledger.hold(100)
    await ledger.let_pass(hold, timedelta(seconds=70))
    await reaper.run(ledger.org.database)
    return hold


async def test_a_hold_is_written_off_under_the_rule_of_the_lost_worker(
    ledger: DirectLedger,
) -> None:
    hold = await unsettled_hold(ledger)
    before = paid(OperatorPays.WORKER_LOST)
    await ledger.tamper("UPDATE unsettled_holds SET decide_at = clock_timestamp()")

    await reaper.run(ledger.org.database)

    assert await stored(ledger.org.database, hold) == (None, False, "worker_lost")
    assert paid(OperatorPays.WORKER_LOST) - before == 1


@pytest.mark.parametrize(("amount", "rule"), [(100, None), (130, "above_hold")])
async def test_an_operator_who_settles_knows_no_count_of_delivered_tokens(
    ledger: DirectLedger, amount: int, rule: str | None
) -> None:
    hold = await unsettled_hold(ledger)

    async with ledger.org.database.mutation(ledger.org.authority()) as tx:
        await operations.settle(
            tx, hold.reservation_id, used=Charge(), amount=PicoUsd(amount), reason="an invoice"
        )

    assert await stored(ledger.org.database, hold) == (None, False, rule)


async def test_a_closed_day_still_knows_its_estimated_requests(ledger: DirectLedger) -> None:
    entered = await enter_past(ledger, days_ago(40), 100)
    await ledger.tamper(
        "UPDATE ledger_entries SET is_estimated = true WHERE reservation_id = $1 AND phase = 1",
        entered.reservation_id,
    )
    await ledger.tamper("UPDATE cost_daily SET estimated_requests = 1")
    await ledger.tamper("UPDATE cost_hourly SET estimated_requests = 1")
    await assert_conserved(ledger.org.database)

    await partitions.remove_old(ledger.org.database, entry_days=30)

    assert await ledger.value("SELECT estimated_requests FROM ledger_closings") == 1
    await assert_conserved(ledger.org.database)


async def test_a_hold_that_claims_a_delivery_is_refused(ledger: DirectLedger) -> None:
    await ledger.hold(100)

    with pytest.raises(asyncpg.CheckViolationError, match="entries_hold_delivers_nothing"):
        await ledger.tamper("UPDATE ledger_entries SET delivered_tokens = 1 WHERE phase = 0")
