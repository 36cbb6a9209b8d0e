"""The doctor and the reports of a deployment that reads from a streaming standby."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from msgspec import structs

from tests.activity.records import days_ago
from tests.cli.commands import Operator, environment
from tests.cli.conftest import deployed
from tests.cli.test_archive import with_usage
from tests.identity.waiting import until
from tests.storage.cluster import Cluster, running_cluster, running_standby
from tests.storage.test_replica import reads_by
from tests.support.gateway import running_gateway
from tollhouse.settings import load
from tollhouse.storage import migrate

REPLICA = "TOLLHOUSE_DATABASE__REPLICA_URL"
MANAGED = "/manage/v1/organization"


@pytest.fixture
async def pair() -> AsyncIterator[tuple[Cluster, Cluster]]:
    async with running_cluster() as primary, running_standby(primary) as standby:
        await migrate.migrate(primary.url)
        yield primary, standby


@pytest.fixture
def reader(pair: tuple[Cluster, Cluster], tools: Path, tmp_path: Path) -> Operator:
    """The operator of a deployment with a standby for reads."""
    operator = deployed(pair[0].url, tmp_path, environment(tools))
    operator.environment[REPLICA] = pair[1].url
    return operator


async def test_doctor_says_why_the_standby_is_not_read_and_what_it_holds_back(
    reader: Operator, pair: tuple[Cluster, Cluster]
) -> None:
    # The servers of tests have no fsync, which is a failure of its own.
    well = await asyncio.to_thread(reader.json, "doctor", exit_code=1)
    await pair[1].execute("ALTER SYSTEM SET hot_standby_feedback = on")
    await pair[1].execute("SELECT pg_reload_conf()")
    feeding = await asyncio.to_thread(reader.json, "doctor", exit_code=1)
    await pair[1].kill()
    away = await asyncio.to_thread(reader.json, "doctor", exit_code=1)
    await pair[1].start()

    first, second, third = (
        next(each for each in report["data"] if each["check"] == "replica")
        for report in (well, feeding, away)
    )
    assert (first["outcome"], first["found"]) == ("ok", "it has all that the primary has")
    assert second["outcome"] == third["outcome"] == "warning"
    assert "hot_standby_feedback = off" in second["remedy"]
    assert third["found"].startswith("not read: ")


async def test_reports_and_lists_of_the_api_are_read_from_the_standby(
    reader: Operator, pair: tuple[Cluster, Cluster]
) -> None:
    await asyncio.to_thread(with_usage, reader)
    key = (await asyncio.to_thread(reader.json, "admin-key", "create", "a key"))["value"]
    # The record is old, and must not be dropped when the worker starts.
    variables = {REPLICA: pair[1].url, "TOLLHOUSE_ACTIVITY__RECORD_DAYS": "60"}
    settings = load(reader.settings_path, environment=variables)
    settings = structs.replace(settings, server=structs.replace(settings.server, port=0))
    yesterday = f"start_time={int(days_ago(1).timestamp())}"
    paths = (
        f"/v1/organization/costs?{yesterday}",
        f"{MANAGED}/usage?{yesterday}",
        f"{MANAGED}/requests",
        f"{MANAGED}/request_rollups?{yesterday}",
    )
    first = reads_by("replica")

    async def has_verified() -> bool:
        database = await asyncpg.connect(settings.database.url)
        try:
            return bool(
                await database.fetchval("SELECT max(verified_at) FROM ledger_verifications")
            )
        finally:
            await database.close()

    async with running_gateway(settings) as gateway, gateway.client(key) as client:
        while reads_by("replica") == first:
            assert (await client.get(paths[0])).status_code == 200
        # The first verification reads there as well.
        await until(has_verified)
        before = reads_by("replica")
        answers = [await client.get(path) for path in paths]
        counted = reads_by("replica") - before
        listed = (await client.get(f"{MANAGED}/requests")).json()["data"]

    assert [answer.status_code for answer in answers] == [200] * len(paths)
    assert counted == len(paths)
    assert len(listed) == 1
