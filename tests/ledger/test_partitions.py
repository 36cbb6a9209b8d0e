"""Days of the ledger: made ahead, closed when old, and never in an admission's way."""

import asyncio
from datetime import date

import asyncpg
import pytest

from tests.ledger.direct_ledger import DirectLedger, open_ledger
from tests.ledger.invariants import assert_conserved
from tests.ledger.past import KEPT_DAYS, days_ago, enter_past
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.ledger import partitions
from tollhouse.ledger.errors import DayIsClosed
from tollhouse.storage import partitions as tables
from tollhouse.storage.partitions import DailyTable, PartitionState

ENTRY_DAYS = 30
OLD = 40


@pytest.fixture
async def ledger(org: OrganizationFixture, database_url: str) -> DirectLedger:
    return await open_ledger(org, database_url)


async def old_days(ledger: DirectLedger) -> dict[date, PartitionState]:
    """What is there of days that may go."""
    async with ledger.org.database.transaction() as tx:
        found = await tables.older_than(tx, DailyTable.LEDGER_ENTRIES, days_ago(ENTRY_DAYS))
    return {partition.day: partition.state for partition in found}


async def remove_old(ledger: DirectLedger) -> None:
    await partitions.remove_old(ledger.org.database, entry_days=ENTRY_DAYS)


async def test_days_are_made_from_yesterday_to_a_week_ahead(ledger: DirectLedger) -> None:
    async with ledger.connection() as connection:
        for (name,) in await connection.fetch(
            "SELECT inhrelid::regclass::text FROM pg_inherits"
            " WHERE inhparent = 'ledger_entries'::regclass"
        ):
            await connection.execute(f"DROP TABLE {name}")

    await tables.ensure(ledger.org.database, DailyTable.LEDGER_ENTRIES)
    await tables.ensure(ledger.org.database, DailyTable.LEDGER_ENTRIES)

    rows = await ledger.org.database.fetch_all(
        "SELECT inhrelid::regclass::text AS name FROM pg_inherits"
        " WHERE inhparent = 'ledger_entries'::regclass ORDER BY 1"
    )
    expected = [f"ledger_entries_{days_ago(-ahead):%Y%m%d}" for ahead in range(-1, 8)]
    assert [row["name"] for row in rows] == expected
    await ledger.hold()


async def test_an_old_day_is_closed_and_dropped_and_everything_still_adds_up(
    ledger: DirectLedger,
) -> None:
    old, young = days_ago(OLD), days_ago(ENTRY_DAYS - 1)
    for amount in (100, 20):
        await enter_past(ledger, old, amount)
    await enter_past(ledger, old, 3, model="another model")
    await enter_past(ledger, young, 7)
    reported = await reports(ledger)

    await remove_old(ledger)

    assert await old_days(ledger) == {}
    assert await reports(ledger) == reported
    assert await ledger.value("SELECT array_agg(day) FROM closed_days") == [old]
    assert await ledger.value("SELECT sum(posted_pico) FROM ledger_entries") == 7
    assert await ledger.value("SELECT settled_pico FROM accounts WHERE settled_pico > 0") == 130
    await assert_conserved(ledger.org.database)
    await remove_old(ledger)
    await assert_conserved(ledger.org.database)


async def reports(ledger: DirectLedger) -> list[tuple[object, ...]]:
    async with ledger.connection() as connection:
        daily = await connection.fetch("SELECT * FROM cost_daily ORDER BY 1, 2, 3, 4, 5")
        hourly = await connection.fetch("SELECT * FROM cost_hourly ORDER BY 1, 2, 3, 4, 5")
    return [tuple(row) for row in (*daily, *hourly)]


async def test_what_the_house_bore_is_carried_by_the_closing_too(ledger: DirectLedger) -> None:
    resolution = await enter_past(ledger, days_ago(OLD), 100)
    await ledger.tamper(
        "UPDATE ledger_entries SET excess_pico = 5 WHERE reservation_id = $1 AND phase = 1",
        resolution.reservation_id,
    )
    await ledger.tamper("UPDATE accounts SET written_off_excess_pico = 5 WHERE settled_pico > 0")
    await assert_conserved(ledger.org.database)

    await remove_old(ledger)

    assert await old_days(ledger) == {}
    await assert_conserved(ledger.org.database)


@pytest.mark.tampers
async def test_a_day_with_an_open_hold_stays(ledger: DirectLedger) -> None:
    resolution = await enter_past(ledger, days_ago(OLD), 100)
    await ledger.tamper(
        "DELETE FROM ledger_entries WHERE reservation_id = $1 AND phase = 1",
        resolution.reservation_id,
    )

    await remove_old(ledger)

    assert await old_days(ledger) == {days_ago(OLD): PartitionState.ATTACHED}
    assert await ledger.value("SELECT count(*) FROM closed_days") == 0


async def test_nothing_can_be_entered_in_a_closed_day(ledger: DirectLedger) -> None:
    await enter_past(ledger, days_ago(OLD), 100)
    await remove_old(ledger)

    with pytest.raises(DayIsClosed):
        await enter_past(ledger, days_ago(OLD), 100)

    assert await old_days(ledger) == {}


async def test_the_oldest_day_that_is_kept_can_be_entered_and_no_older_one(
    ledger: DirectLedger,
) -> None:
    with pytest.raises(DayIsClosed):
        await enter_past(ledger, days_ago(KEPT_DAYS + 1), 100)

    await enter_past(ledger, days_ago(KEPT_DAYS), 100)

    assert await ledger.value("SELECT day FROM cost_daily") == days_ago(KEPT_DAYS)


async def test_a_closed_day_closes_no_other(ledger: DirectLedger) -> None:
    await enter_past(ledger, days_ago(OLD), 100)
    await remove_old(ledger)

    await enter_past(ledger, days_ago(OLD - 1), 100)

    assert await ledger.value("SELECT array_agg(day) FROM closed_days") == [days_ago(OLD)]
    assert await ledger.value("SELECT count(*) FROM cost_daily") == 2


async def test_a_long_reader_stops_no_admission_and_the_day_goes_when_it_has_left(
    ledger: DirectLedger,
) -> None:
    old = days_ago(OLD)
    await enter_past(ledger, old, 100)

    async with ledger.connection() as reader:
        reading = reader.transaction(isolation="repeatable_read", readonly=True)
        await reading.start()
        await reader.fetch("SELECT count(*) FROM ledger_entries")
        removing = asyncio.create_task(keep(ledger))
        admitted = 0
        while not removing.done():
            hold = await asyncio.wait_for(ledger.hold(10), 60)
            await asyncio.wait_for(ledger.post(hold, 5), 60)
            admitted += 1
        await removing
        assert admitted > 0
        assert await old_days(ledger) == {old: PartitionState.DETACHING}
        assert await reader.fetchval("SELECT sum(posted_pico) FROM ledger_entries") == 100
        await assert_conserved(ledger.org.database)
        await reading.rollback()
    await keep(ledger)

    assert await old_days(ledger) == {}
    await assert_conserved(ledger.org.database)


async def keep(ledger: DirectLedger) -> None:
    await tables.ensure(ledger.org.database, DailyTable.LEDGER_ENTRIES)
    await remove_old(ledger)


async def test_a_day_that_was_detached_but_not_dropped_is_dropped_by_the_next_run(
    ledger: DirectLedger,
) -> None:
    old = days_ago(OLD)
    await enter_past(ledger, old, 100)
    async with ledger.connection() as keeper, keeper.transaction():
        # Whoever holds the day itself keeps it from going, but keeps nobody from the ledger.
        await keeper.execute(f"LOCK TABLE ledger_entries_{old:%Y%m%d} IN ACCESS SHARE MODE")
        await remove_old(ledger)
        await ledger.hold()
        assert set(await old_days(ledger)) == {old}
    await remove_old(ledger)

    assert await old_days(ledger) == {}
    await assert_conserved(ledger.org.database)


async def test_two_workers_that_remove_days_at_once_do_no_harm(ledger: DirectLedger) -> None:
    for days in range(OLD, OLD + 3):
        await enter_past(ledger, days_ago(days), days)

    await asyncio.gather(remove_old(ledger), remove_old(ledger))
    await remove_old(ledger)

    assert await old_days(ledger) == {}
    await assert_conserved(ledger.org.database)


async def test_a_lock_on_the_ledger_delays_the_making_of_days_and_nothing_breaks(
    ledger: DirectLedger,
) -> None:
    ahead = days_ago(-7)
    async with ledger.connection() as connection:
        await connection.execute(f"DROP TABLE IF EXISTS ledger_entries_{ahead:%Y%m%d}")
        async with connection.transaction():
            await connection.execute("LOCK TABLE ledger_entries IN SHARE UPDATE EXCLUSIVE MODE")
            await tables.ensure(ledger.org.database, DailyTable.LEDGER_ENTRIES)
            await ledger.hold()

    await tables.ensure(ledger.org.database, DailyTable.LEDGER_ENTRIES)

    name = f"ledger_entries_{ahead:%Y%m%d}"
    assert await ledger.value("SELECT to_regclass($1)::text", name) == name


async def test_a_closing_is_final(ledger: DirectLedger) -> None:
    await enter_past(ledger, days_ago(OLD), 100)
    await remove_old(ledger)

    async with ledger.connection() as connection:
        with pytest.raises(asyncpg.RaiseError, match="append-only"):
            await connection.execute("UPDATE ledger_closings SET request_pico = 0")


async def test_yesterday_is_never_too_old(ledger: DirectLedger) -> None:
    await enter_past(ledger, days_ago(1), 100)

    await partitions.remove_old(ledger.org.database, entry_days=2)

    assert await ledger.value("SELECT count(*) FROM closed_days") == 0
