"""Verification that reads only new days, and the one that never ends."""

import asyncio
from collections.abc import AsyncIterator
from datetime import date, datetime, timedelta

import pytest

from tests.ledger.direct_ledger import DirectLedger, open_ledger
from tests.ledger.mixed_ledger import mixed_ledger
from tests.ledger.past import days_ago, enter_past
from tests.support import databases
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tests.support.wrong_clocks import MovedClock
from tollhouse.ledger import partitions, verification, verifier
from tollhouse.ledger.verified_days import REREAD_AFTER
from tollhouse.ledger.verifier import VERIFIED_AGAIN_AFTER, Verifier
from tollhouse.storage import partitions as daily
from tollhouse.storage.database import Database
from tollhouse.storage.partitions import DailyTable
from tollhouse.storage.replica import ReportReads

OLD = 20
REPEATED = 8
"""PostgreSQL may keep one plan for all days from the sixth call on."""


@pytest.fixture
async def database_url(migrated_template: str) -> AsyncIterator[str]:
    async with databases.temporary(template=migrated_template) as url:
        await MovedClock(url).install()
        yield url


@pytest.fixture
async def ledger(org: OrganizationFixture, database_url: str) -> DirectLedger:
    return await mixed_ledger(org, database_url)


def verifier_of(database: Database) -> Verifier:
    return Verifier(database, ReportReads(database))


async def verify(ledger: DirectLedger) -> list[verification.Difference]:
    """Verify as the gateway does, and return what differs."""
    org = ledger.org
    begun_at = await ledger.value(
        """
        INSERT INTO ledger_verifications (organization_id, begun_at)
        VALUES ($1, clock_timestamp())
        ON CONFLICT (organization_id) DO UPDATE SET begun_at = EXCLUDED.begun_at
        RETURNING begun_at
        """,
        org.organization_id,
    )
    assert isinstance(begun_at, datetime)
    found = await verifier_of(org.database).verify(org.organization_id, begun_at)
    return found.differences


async def marks(ledger: DirectLedger) -> set[date]:
    rows = await ledger.org.database.fetch_all(
        "SELECT day FROM verified_days WHERE costs_digest IS NOT NULL"
    )
    return {row["day"] for row in rows}


async def test_a_day_that_has_ended_is_read_once(ledger: DirectLedger) -> None:
    org = ledger.org
    assert await verify(ledger) == []
    assert await marks(ledger) == {days_ago(OLD)}

    async with ledger.connection() as other, other.transaction():
        # Whoever opens the day waits for this lock.
        await other.execute(f"LOCK TABLE ledger_entries_{days_ago(OLD):%Y%m%d}")
        impatient = org.database.share(connections_max=1)
        for _ in range(REPEATED):
            async with impatient.transaction() as tx:
                await tx.execute("SELECT set_config('lock_timeout', '2s', false)")
            found = await verification.verify_new(impatient, org.organization_id)
            assert found.differences == []
            assert found.marks is not None
            assert found.marks.days == []


@pytest.mark.guarantee("I7")
@pytest.mark.tampers
@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE accounts SET settled_pico = settled_pico - 1",
        "UPDATE accounts SET written_off_unknown_pico = written_off_unknown_pico + 1",
        "UPDATE accounts SET written_off_excess_pico = written_off_excess_pico + 1",
        "UPDATE spending_counters SET settled_pico = settled_pico + 1 WHERE scope = 'project'",
        "UPDATE cost_daily SET output_tokens = output_tokens + 1 WHERE day = $1",
        "UPDATE cost_daily SET request_pico = request_pico + 1 WHERE day = $1",
        "UPDATE cost_daily SET model = 'another' WHERE day = $1",
        "DELETE FROM cost_daily WHERE day = $1",
        "UPDATE cost_hourly SET hour = hour + interval '1 hour' WHERE hour::date = $1",
        "UPDATE cost_hourly SET images = images + 1 WHERE hour::date = $1",
        "DELETE FROM cost_hourly WHERE hour::date = $1",
    ],
)
async def test_every_change_of_a_sum_is_found_as_if_all_were_read(
    ledger: DirectLedger, tampering: str
) -> None:
    assert await verify(ledger) == []
    arguments = [days_ago(OLD)] if "$1" in tampering else []
    await ledger.tamper(tampering, *arguments)

    found = await verify(ledger)

    assert found
    assert found == await verification.verify(ledger.org.database, ledger.org.organization_id)


@pytest.mark.tampers
async def test_only_a_full_verification_reads_entries_of_verified_days_again(
    ledger: DirectLedger,
) -> None:
    assert await verify(ledger) == []
    await ledger.tamper(
        "UPDATE ledger_entries SET posted_pico = posted_pico - 1, request_pico = request_pico - 1"
        " WHERE admitted_day = $1 AND phase = 1",
        days_ago(OLD),
    )

    assert await verify(ledger) == []
    assert await verification.verify(ledger.org.database, ledger.org.organization_id)


async def test_usage_that_is_entered_later_is_verified(ledger: DirectLedger) -> None:
    assert await verify(ledger) == []
    digest = await ledger.value("SELECT costs_digest FROM verified_days")
    await enter_past(ledger, days_ago(OLD), 25)

    assert await verify(ledger) == []
    assert await ledger.value("SELECT costs_digest FROM verified_days") != digest


async def test_what_the_entries_alone_say_of_a_verified_day_is_added(
    ledger: DirectLedger,
) -> None:
    """A write-off is in no cost row."""
    await ledger.tamper(
        "UPDATE ledger_entries SET excess_pico = 5, operator_pays = 'above_hold'"
        " WHERE admitted_day = $1 AND phase = 1",
        days_ago(OLD),
    )
    await ledger.tamper("UPDATE accounts SET written_off_excess_pico = written_off_excess_pico + 5")
    assert await verify(ledger) == []
    assert await ledger.value("SELECT excess_pico FROM verified_days") == 5

    assert await verify(ledger) == []


async def test_a_day_with_an_open_hold_is_read_again(
    ledger: DirectLedger, database_url: str
) -> None:
    await ledger.tamper("UPDATE ledger_entries SET deadline_at = deadline_at + interval '10 days'")
    await MovedClock(database_url).advance(timedelta(days=10))

    assert await verify(ledger) == []
    assert await marks(ledger) == {days_ago(OLD)}


@pytest.mark.tampers
async def test_a_verified_day_that_is_lost_is_found(ledger: DirectLedger) -> None:
    assert await verify(ledger) == []
    await ledger.tamper(f"DROP TABLE ledger_entries_{days_ago(OLD):%Y%m%d}")

    assert await verify(ledger)


@pytest.mark.tampers
async def test_a_verified_day_is_read_again_after_a_month(ledger: DirectLedger) -> None:
    assert await verify(ledger) == []
    await ledger.tamper("DELETE FROM ledger_entries WHERE admitted_day = $1", days_ago(OLD))
    assert await verify(ledger) == []
    await ledger.tamper(
        "UPDATE verified_days SET verified_at = verified_at - $1::interval",
        REREAD_AFTER + timedelta(seconds=1),
    )

    assert await verify(ledger)


async def test_days_without_entries_are_not_opened(
    org: OrganizationFixture, database_url: str
) -> None:
    ledger = await open_ledger(org, database_url)
    async with org.database.transaction() as tx:
        await daily.make(
            tx, DailyTable.LEDGER_ENTRIES, first_day=days_ago(60), last_day=days_ago(0)
        )
    assert await verify(ledger) == []

    async with ledger.connection() as other, other.transaction():
        for day in range(2, 61):
            await other.execute(f"LOCK TABLE ledger_entries_{days_ago(day):%Y%m%d}")
        async with asyncio.timeout(10):
            assert await verify(ledger) == []


@pytest.mark.tampers
async def test_a_ledger_that_cannot_be_read_does_not_stop_the_others(ledger: DirectLedger) -> None:
    database = ledger.org.database
    await ledger.tamper("UPDATE accounts SET written_off_unknown_pico = 'NaN'")
    lost = await new_organization_fixture(database)
    await ledger.tamper("DELETE FROM accounts WHERE organization_id = $1", lost.organization_id)

    await verifier_of(database).run()

    rows = await database.fetch_all("SELECT * FROM ledger_verifications WHERE differences > 0")
    assert {row["organization_id"] for row in rows} == {
        ledger.org.organization_id,
        lost.organization_id,
    }


async def test_an_organization_that_was_never_verified_is_as_old_as_it_is(
    ledger: DirectLedger,
) -> None:
    await ledger.tamper("UPDATE organizations SET created_at = created_at - interval '2 days'")
    async with ledger.org.database.transaction() as tx:
        found = await verifier.state(tx)

    assert found is not None
    assert found.oldest_age is not None
    assert found.oldest_age > timedelta(days=2)


async def test_a_closed_day_needs_no_mark(ledger: DirectLedger) -> None:
    assert await verify(ledger) == []
    await partitions.remove_old(ledger.org.database, entry_days=10)

    assert await verify(ledger) == []
    assert await marks(ledger) == set()


async def test_each_organization_is_verified_in_its_turn(ledger: DirectLedger) -> None:
    database = ledger.org.database
    other = await new_organization_fixture(database)
    await ledger.tamper("UPDATE accounts SET written_off_excess_pico = 1 WHERE credit_pico > 0")
    everyone = verifier_of(database)

    await everyone.run()
    before = await verified(database)
    await everyone.run()

    assert set(before) == {ledger.org.organization_id, other.organization_id}
    assert await verified(database) == before, "nothing was due"
    async with database.transaction() as tx:
        found = await verifier.state(tx)
    assert found is not None
    assert found.differing_organizations == 1

    await ledger.tamper("UPDATE accounts SET written_off_excess_pico = 0")
    await ledger.tamper(
        "UPDATE ledger_verifications SET begun_at = begun_at - $1::interval",
        VERIFIED_AGAIN_AFTER + timedelta(seconds=1),
    )
    await everyone.run()

    async with database.transaction() as tx:
        found = await verifier.state(tx)
    assert found is not None
    assert found.differing_organizations == 0
    assert found.oldest_age is not None
    assert found.oldest_age < VERIFIED_AGAIN_AFTER


async def verified(database: Database) -> dict[object, object]:
    rows = await database.fetch_all("SELECT * FROM ledger_verifications")
    return {row["organization_id"]: row["verified_at"] for row in rows}
