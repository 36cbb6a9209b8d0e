"""Days and hours of activity: made ahead, forgotten when old, never in a writer's way."""

import asyncio
from datetime import UTC, date, datetime, timedelta

import asyncpg
import msgspec

from tests.activity.records import Customer, days_ago, make_days
from tests.identity.waiting import until
from tests.support.gateway import Gateway, run_jobs, running_gateway
from tollhouse.activity import service
from tollhouse.activity.recorder import RequestRecorder
from tollhouse.settings import ActivitySettings, Settings
from tollhouse.storage import partitions
from tollhouse.storage.database import Database
from tollhouse.storage.partitions import DailyTable, PartitionState

RECORD_DAYS = 30
OLD = 40


async def remove_old_days(database: Database) -> None:
    await partitions.remove_old(database, DailyTable.REQUESTS, days_kept=RECORD_DAYS)


async def write(database: Database, customer: Customer, *instants: datetime) -> None:
    recorder = RequestRecorder(database, waiting_records_max=1_000)
    for at in instants:
        await make_days(database, at, at)
        recorder.record(customer.record(at))
    await recorder.write()


async def old_days(database: Database) -> dict[date, PartitionState]:
    async with database.transaction() as tx:
        found = await partitions.older_than(tx, DailyTable.REQUESTS, days_ago(RECORD_DAYS).date())
    return {partition.day: partition.state for partition in found}


async def days_of_records(database: Database) -> set[date]:
    return {row["day"] for row in await database.fetch_all("SELECT DISTINCT day FROM requests")}


async def hours(database: Database) -> list[datetime]:
    rows = await database.fetch_all("SELECT hour FROM request_hours ORDER BY hour")
    return [row["hour"] for row in rows]


async def test_days_older_than_the_setting_go_with_their_requests_and_hours_stay(
    database: Database, customer: Customer
) -> None:
    await write(database, customer, days_ago(OLD), days_ago(RECORD_DAYS), days_ago(0))

    await remove_old_days(database)

    assert await old_days(database) == {}
    kept = {days_ago(RECORD_DAYS).date(), days_ago(0).date()}
    assert await days_of_records(database) == kept
    assert len(await hours(database)) == 3


async def test_hours_older_than_400_days_are_forgotten(
    database: Database, customer: Customer
) -> None:
    now = datetime.now(UTC)
    instants = [now - timedelta(days=days) for days in (500, 402, 399, 0)]
    await write(database, customer, *instants)

    await service.remove_old_hours(database, now)

    assert [hour.date() for hour in await hours(database)] == [at.date() for at in instants[2:]]


async def test_a_long_reader_stops_no_writer_and_the_day_goes_when_it_has_left(
    database: Database, database_url: str, customer: Customer
) -> None:
    await write(database, customer, days_ago(OLD))
    reader = await asyncpg.connect(database_url)
    reading = reader.transaction(isolation="repeatable_read", readonly=True)
    await reading.start()
    await reader.fetch("SELECT count(*) FROM requests")

    removing = asyncio.create_task(remove_old_days(database))
    written = 0
    while not removing.done():
        await write(database, customer, datetime.now(UTC))
        written += 1
    await removing
    assert await old_days(database) == {days_ago(OLD).date(): PartitionState.DETACHING}
    await reading.rollback()
    await reader.close()
    await remove_old_days(database)

    assert written > 0
    assert await old_days(database) == {}


async def test_two_workers_that_remove_days_at_once_do_no_harm(
    database: Database, customer: Customer
) -> None:
    await write(database, customer, *(days_ago(days) for days in range(OLD, OLD + 3)))

    removals = (remove_old_days(database) for _ in range(2))
    await asyncio.gather(*removals)
    await remove_old_days(database)

    assert await old_days(database) == {}


def recorder_of(gateway: Gateway) -> RequestRecorder:
    return gateway.application._recorder  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - what handlers are given


async def test_a_worker_makes_days_writes_what_is_noted_and_forgets_what_is_old(
    settings: Settings, database: Database, database_url: str, customer: Customer
) -> None:
    await write(database, customer, days_ago(OLD))
    connection = await asyncpg.connect(database_url)
    await connection.execute(f"DROP TABLE requests_{days_ago(-5):%Y%m%d}")
    await connection.close()
    chosen = msgspec.structs.replace(settings, activity=ActivitySettings(record_days=RECORD_DAYS))

    async def is_written() -> bool:
        return days_ago(0).date() in await days_of_records(database)

    async with running_gateway(chosen) as gateway:
        async with database.transaction() as tx:
            assert await partitions.missing(tx, DailyTable.REQUESTS, days_ahead=7) == 0
        recorder_of(gateway).record(customer.record())
        await until(is_written)
        await run_jobs(gateway.application, "partitions", "activity-retention")

    assert await old_days(database) == {}


async def test_what_is_noted_is_there_when_the_worker_has_ended(
    settings: Settings, database: Database, customer: Customer
) -> None:
    async with running_gateway(settings) as gateway:
        for _ in range(5):
            recorder_of(gateway).record(customer.record())

    rows = await database.fetch_all("SELECT count(*) AS written FROM requests")
    assert rows[0]["written"] == 5
