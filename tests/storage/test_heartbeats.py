"""A heartbeat tells the worker the database's time."""

from uuid import uuid4

from tollhouse.base.ids import InstanceId
from tollhouse.storage import instances
from tollhouse.storage.database import Database


async def test_a_heartbeat_returns_the_databases_time(database: Database) -> None:
    instance_id = InstanceId(uuid4())
    for _ in range(2):
        async with database.transaction() as tx:
            before = await tx.fetch_value("SELECT clock_timestamp()")
            told = await instances.heartbeat(tx, instance_id)
            after = await tx.fetch_value("SELECT clock_timestamp()")

        assert before <= told <= after
