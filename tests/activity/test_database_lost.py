"""The database server crashes under a recorder and comes back: nothing is lost or counted twice."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.activity.records import Customer
from tests.identity.waiting import until
from tests.storage.cluster import Cluster, running_cluster
from tests.support.gateway import settings_for
from tollhouse.activity.recorder import RequestRecorder
from tollhouse.app import connect
from tollhouse.base.ids import RequestId
from tollhouse.base.tasks import Tasks
from tollhouse.storage import migrate
from tollhouse.storage.database import Database

CRASHES = 3
TIMEOUT_SECONDS = 120.0


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with running_cluster() as running:
        await migrate.migrate(running.url)
        yield running


@pytest.fixture
async def database(cluster: Cluster) -> AsyncIterator[Database]:
    """In the place of the usual one."""
    opened = await connect(settings_for(cluster.url))
    yield opened
    await opened.close()


async def test_crashes_of_the_server_lose_no_record_and_count_none_twice(
    cluster: Cluster, database: Database, customer: Customer
) -> None:
    """Without fsync: a crash of the processes is no crash of the machine."""
    tasks = Tasks()
    recorder = RequestRecorder(database, waiting_records_max=100_000)
    tasks.repeat("activity", recorder.write, 0.01)
    noted: list[RequestId] = []

    async def serve() -> None:
        while True:
            for _ in range(5):
                record = customer.record()
                recorder.record(record)
                noted.append(record.request_id)
            await asyncio.sleep(0.001)

    serving = tasks.start("serving", serve())
    for _ in range(CRASHES):
        await until_more(noted, 500)
        await cluster.kill()
        await until_more(noted, 100)
        await cluster.start()
    serving.cancel()
    await tasks.drain(deadline_seconds=TIMEOUT_SECONDS)
    await recorder.flush(deadline_seconds=TIMEOUT_SECONDS)

    rows = await database.fetch_all("SELECT request_id FROM requests")
    assert {row["request_id"] for row in rows} == set(noted)
    hours = await database.fetch_all("SELECT sum(requests)::int AS requests FROM request_hours")
    assert hours[0]["requests"] == len(noted)


async def until_more(noted: list[RequestId], count: int) -> None:
    enough = len(noted) + count

    async def is_so() -> bool:
        return len(noted) >= enough

    await until(is_so)
