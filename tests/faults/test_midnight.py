"""A request that is admitted before midnight at a month's end, and retried or settled after it.

The clock cannot be held in the database, so the hold is entered as of that day; all else goes
the usual way, weeks later instead of seconds.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import pytest

from tests.faults.recovery import Money, decide, money, reap
from tests.ledger.invariants import assert_conserved
from tests.ledger.money import Payer, new_batcher, new_payer, posted
from tests.ledger.sending import send
from tollhouse.base.ids import InstanceId, time_ordered_uuid
from tollhouse.base.tasks import Tasks
from tollhouse.ledger import partitions
from tollhouse.ledger.batches import BatchResult, hold_row
from tollhouse.ledger.types import AdmissionVerdict, Hold, ResolutionResult
from tollhouse.storage import instances
from tollhouse.storage.database import Database

INSTANCE = InstanceId(time_ordered_uuid())


@pytest.fixture
async def payer(database: Database) -> Payer:
    return await new_payer(database, credit=100)


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    running = Tasks()
    yield running
    assert await running.drain(deadline_seconds=120) == 0


@pytest.fixture
def last_day() -> date:
    """Of the month before yesterday's: a hold of minutes ago might be admitted again."""
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    return yesterday.replace(day=1) - timedelta(days=1)


@pytest.fixture
async def hold(database: Database, payer: Payer, last_day: date) -> Hold:
    """Admitted one second before the month's end."""
    await partitions.make_day(database, last_day)
    midnight = datetime.combine(last_day + timedelta(days=1), time.min, UTC)
    hold = replace(
        payer.hold(60, admitted_at=midnight - timedelta(seconds=1)),
        deadline_at=datetime.now(UTC) + timedelta(minutes=10),
    )
    await enter(database, hold)
    return hold


async def enter(database: Database, hold: Hold) -> None:
    """What `ledger_admit_one` does, which would refuse an instant so far off the clock."""
    async with database.transaction() as tx:
        await tx.execute(
            "UPDATE accounts SET reserved_pico = reserved_pico + $2 WHERE organization_id = $1",
            hold.organization_id,
            hold.amount_pico_usd,
        )
        await tx.execute("SELECT ledger_begin_windows($1)", hold_row(hold))
        await tx.execute("SELECT ledger_reserve_in_windows($1, true)", hold_row(hold))
        await tx.execute(
            """
            INSERT INTO ledger_entries (
                organization_id, admitted_day, reservation_id, phase, kind, admitted_at,
                deadline_at, project_id, api_key_id, model, price_revision, instance_id,
                bills_without_answer, held_pico)
            VALUES ($1, $2, $3, 0, 'reserve', $4, $5, $6, $7, $8, $9, $10, false, $11)
            """,
            hold.organization_id,
            hold.admitted_day,
            hold.reservation_id,
            hold.admitted_at,
            hold.deadline_at,
            hold.project_id,
            hold.api_key_id,
            hold.model,
            hold.price_revision,
            INSTANCE,
            hold.amount_pico_usd,
        )


async def retry(database: Database, hold: Hold) -> BatchResult:
    return await send(database, [], [hold], instance_id=INSTANCE, is_retry=True)


async def months(database: Database, payer: Payer) -> dict[date, tuple[int, int]]:
    """What the organization has settled and reserved in each month."""
    rows = await database.fetch_all(
        """
        SELECT window_start, settled_pico, reserved_pico
          FROM spending_counters
         WHERE organization_id = $1
           AND scope = 'organization'
           AND window_start > '-infinity'
        """,
        payer.organization_id,
    )
    return {
        row["window_start"]: (int(row["settled_pico"]), int(row["reserved_pico"])) for row in rows
    }


async def days_with_costs(database: Database) -> list[date]:
    rows = await database.fetch_all("SELECT day FROM cost_daily")
    return [row["day"] for row in rows]


@pytest.mark.guarantee("T8")
async def test_a_retry_after_midnight_finds_the_hold_of_the_day_before(
    database: Database, payer: Payer, hold: Hold, last_day: date
) -> None:
    results = [await retry(database, hold) for _ in range(2)]

    codes = [decision.code for result in results for decision in result.decisions if decision]
    assert codes == [AdmissionVerdict.ADMITTED, AdmissionVerdict.ADMITTED]
    assert await money(database, payer) == Money(reserved=60)
    assert (await months(database, payer))[last_day.replace(day=1)] == (0, 60)
    await assert_conserved(database)


@pytest.mark.guarantee("T8")
async def test_a_retry_of_what_was_never_stored_makes_no_hold_on_another_day(
    database: Database, payer: Payer, hold: Hold
) -> None:
    never_stored = replace(hold, reservation_id=payer.hold(1).reservation_id)

    result = await retry(database, never_stored)

    assert [decision.code for decision in result.decisions if decision] == [
        AdmissionVerdict.WRONG_CLOCK
    ]
    assert await money(database, payer) == Money(reserved=60)
    await assert_conserved(database)


@pytest.mark.guarantee("T8")
async def test_settlements_after_midnight_count_once_and_in_the_month_of_admission(
    database: Database, payer: Payer, hold: Hold, last_day: date, tasks: Tasks
) -> None:
    """Two workers settle it at once, beside a request of the present month."""
    one, other = new_batcher(database, tasks), new_batcher(database, tasks)
    present = payer.hold(10)
    await one.admit(present, wait_max=timedelta(minutes=1))

    outcomes = await asyncio.gather(
        one.resolve(posted(hold, 25)),
        other.resolve(posted(hold, 25)),
        one.resolve(posted(present, 3)),
    )

    assert sorted(outcomes) == [ResolutionResult.NOW, ResolutionResult.NOW, ResolutionResult.BEFORE]
    assert await months(database, payer) == {
        last_day.replace(day=1): (25, 0),
        present.admitted_day.replace(day=1): (3, 0),
    }
    assert sorted(await days_with_costs(database)) == [last_day, present.admitted_day]
    assert await money(database, payer) == Money(settled=28)
    await assert_conserved(database)


@pytest.mark.guarantee("T8")
async def test_a_hold_whose_worker_died_before_midnight_is_decided_on_its_day(
    database: Database, payer: Payer, hold: Hold, last_day: date
) -> None:
    async with database.transaction() as tx:
        await instances.heartbeat(tx, INSTANCE)
    await reap(database, INSTANCE)
    assert await money(database, payer) == Money(reserved=60, unsettled=60)

    await decide(database)

    assert await money(database, payer) == Money(unknown=60)
    assert await months(database, payer) == {last_day.replace(day=1): (0, 0)}
    assert hold.admitted_day == last_day
