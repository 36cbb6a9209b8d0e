"""No statement of the request path opens more partitions than its items have days."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import cast

import pytest

from tests.ledger.direct_ledger import DirectLedger, open_ledger
from tests.ledger.money import Payer, new_payer, posted, voided
from tests.ledger.past import days_ago
from tests.ledger.sending import Form, send
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.ids import InstanceId, time_ordered_uuid
from tollhouse.ledger import operations, reaper
from tollhouse.ledger.marking import mark
from tollhouse.ledger.open_holds import OpenHold
from tollhouse.ledger.types import Hold, Resolution, ResolutionKind, ResolutionResult
from tollhouse.ledger.write_offs import write_off_due
from tollhouse.storage import partitions
from tollhouse.storage.database import Database, Transaction
from tollhouse.storage.partitions import DailyTable

DAYS_KEPT = 60
REPEATED = 8
"""PostgreSQL may keep one plan for all days from the sixth call on."""
INSTANCE = InstanceId(time_ordered_uuid())
OPENED = """
    SELECT array_agg(DISTINCT to_date(right(c.relname, 8), 'YYYYMMDD'))
      FROM pg_locks l
      JOIN pg_class c ON c.oid = l.relation
     WHERE l.pid = pg_backend_pid()
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND c.relkind = 'r'
       AND c.relname ~ '^ledger_entries_[0-9]{8}$'
"""


@pytest.fixture
async def single(database_url: str) -> AsyncIterator[Database]:
    """One connection, so that every call meets the plans that earlier calls have left."""
    database = await Database.connect(
        database_url, pool_size=1, acquire_seconds=5, statement_seconds=20
    )
    async with database.transaction() as tx:
        await partitions.make(
            tx, DailyTable.LEDGER_ENTRIES, first_day=days_ago(DAYS_KEPT), last_day=days_ago(0)
        )
    yield database
    await database.close()


async def opened(tx: Transaction) -> list[date]:
    """The days whose partitions this transaction has opened, since it holds a lock on each."""
    return await tx.fetch_value(OPENED) or []


async def apply(
    tx: Transaction,
    ends: Sequence[Resolution],
    holds: Sequence[Hold],
    *,
    form: Form = Form.OWN,
    is_retry: bool = False,
) -> list[ResolutionResult | None]:
    """Send one batch in a transaction that stays open, so that its locks can be counted."""
    result = await send(cast("Database", tx), ends, holds, form, is_retry=is_retry)
    assert {decision and decision.code for decision in result.decisions} <= {0}
    return result.resolved


async def on_day(database: Database, payer: Payer, day: date) -> Hold:
    """An open hold of that day, as an admission left it."""
    hold = payer.hold(1_000)
    moved = replace(hold, admitted_at=datetime.combine(day, time(12), UTC))
    async with database.transaction() as tx:
        await apply(tx, [], [hold])
        await tx.execute("SET LOCAL session_replication_role = replica")
        await tx.execute(
            "UPDATE ledger_entries SET admitted_day = $2, admitted_at = $3"
            " WHERE reservation_id = $1",
            hold.reservation_id,
            day,
            moved.admitted_at,
        )
        # Its day and week are not counted, as in counters that no hold has begun.
        await tx.execute(
            """
            UPDATE spending_counters
               SET short_start = '-infinity', short_reserved_pico = 0, short_settled_pico = 0
            """
        )
    return moved


def charged(hold: Hold) -> Resolution:
    return posted(hold, 400)


def written_off(hold: Hold) -> Resolution:
    return replace(voided(hold), kind=ResolutionKind.WRITE_OFF)


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("is_retry", [False, True])
async def test_an_admission_opens_the_day_of_its_request_alone(
    single: Database, form: Form, *, is_retry: bool
) -> None:
    payer = await new_payer(single, credit=10**9)

    for _ in range(REPEATED):
        hold = payer.hold(1_000)
        async with single.transaction() as tx:
            await apply(tx, [], [hold], form=form, is_retry=is_retry)

            assert await opened(tx) == [hold.admitted_day]


@pytest.mark.tampers
@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("ended", [charged, voided, written_off])
async def test_a_settlement_opens_the_day_of_its_hold_alone(
    single: Database, ended: Callable[[Hold], Resolution], form: Form
) -> None:
    payer = await new_payer(single, credit=10**9)

    for back in range(REPEATED):
        hold = await on_day(single, payer, days_ago(5 * back))
        for expected in (ResolutionResult.NOW, ResolutionResult.BEFORE):
            async with single.transaction() as tx:
                assert await apply(tx, [ended(hold)], [], form=form) == [expected]

                assert await opened(tx) == [hold.admitted_day]


@pytest.mark.tampers
async def test_a_batch_opens_as_many_days_as_its_items_have(single: Database) -> None:
    payer = await new_payer(single, credit=10**9)

    for back in range(1, REPEATED + 1):
        old = [await on_day(single, payer, days_ago(days)) for days in (back, back, 50)]
        new = payer.hold(1_000)
        ends = [posted(old[0], 10), voided(old[1]), written_off(old[2])]
        async with single.transaction() as tx:
            assert await apply(tx, [*ends, ends[0]], [new]) == [
                *[ResolutionResult.NOW] * 3,
                ResolutionResult.BEFORE,
            ]

            assert await opened(tx) == [days_ago(50), days_ago(back), days_ago(0)]


@pytest.fixture
async def ledger(org: OrganizationFixture, database_url: str, single: Database) -> DirectLedger:
    return await open_ledger(replace(org, database=single), database_url)


async def unsettled_hold(ledger: DirectLedger) -> Hold:
    hold = await ledger.hold(100)
    await ledger.let_pass(hold, timedelta(seconds=70))
    await reaper.run(ledger.org.database)
    assert await ledger.unsettled() == {hold.reservation_id}
    return hold


@asynccontextmanager
async def all_other_days_locked(ledger: DirectLedger, hold: Hold) -> AsyncGenerator[None]:
    """Make everybody wait who opens the partition of another day than the hold's."""
    names = await ledger.value(
        "SELECT array_agg(inhrelid::regclass::text) FROM pg_inherits"
        " WHERE inhparent = 'ledger_entries'::regclass AND inhrelid <> to_regclass($1)",
        f"ledger_entries_{hold.admitted_day:%Y%m%d}",
    )
    async with ledger.connection() as connection, connection.transaction():
        locked = ", ".join(cast("list[str]", names))
        await connection.execute(f"LOCK TABLE {locked} IN ACCESS EXCLUSIVE MODE")
        yield


async def test_an_operator_decides_without_opening_another_day(ledger: DirectLedger) -> None:
    for _ in range(REPEATED):
        hold = await unsettled_hold(ledger)
        async with (
            all_other_days_locked(ledger, hold),
            ledger.org.database.mutation(ledger.org.authority()) as tx,
        ):
            await operations.release(tx, hold.reservation_id, reason="it never left")


async def test_the_reaper_marks_and_decides_without_opening_another_day(
    ledger: DirectLedger,
) -> None:
    for _ in range(REPEATED):
        hold = await ledger.hold(100)
        async with all_other_days_locked(ledger, hold):
            assert await mark(ledger.org.database, [open_hold_of(hold)])
            assert await ledger.unsettled() == {hold.reservation_id}
            await ledger.tamper("UPDATE unsettled_holds SET decide_at = clock_timestamp()")
            await write_off_due(ledger.org.database)
            assert await ledger.unsettled() == set()


def open_hold_of(hold: Hold) -> OpenHold:
    return OpenHold(
        organization_id=hold.organization_id,
        admitted_day=hold.admitted_day,
        reservation_id=hold.reservation_id,
        held_pico_usd=hold.amount_pico_usd,
    )
