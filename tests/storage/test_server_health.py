"""What a worker knows about its database server, read from real servers and standbys."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
import pytest_asyncio

from tests.storage.cluster import Cluster, running_cluster, running_standby
from tests.support.gateway import settings_for
from tollhouse.app import Application
from tollhouse.base.clock import HeldClock, SystemClock
from tollhouse.base.findings import FindingOutcome
from tollhouse.observability import registry
from tollhouse.storage import migrate
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable
from tollhouse.storage.health_watch import HealthWatch, ServerIsStandby
from tollhouse.storage.partitions import DailyTable
from tollhouse.storage.server_checks import findings, standbys_finding
from tollhouse.storage.server_health import ServerHealth, read_health, read_history

SECONDS_MAX = 60.0
APPLICATION = "a report of somebody"


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def pair() -> AsyncIterator[tuple[Cluster, Cluster]]:
    """A migrated primary and its standby."""
    async with running_cluster() as primary, running_standby(primary) as standby:
        await migrate.migrate(primary.url)
        yield primary, standby


@pytest.fixture
async def primary(pair: tuple[Cluster, Cluster]) -> AsyncIterator[Cluster]:
    yield pair[0]
    await pair[0].execute("ALTER SYSTEM RESET ALL")
    await pair[0].execute("SELECT pg_reload_conf()")


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[Database]:
    database = await Database.connect(
        url, pool_size=1, acquire_seconds=SECONDS_MAX, statement_seconds=SECONDS_MAX
    )
    try:
        yield database
    finally:
        await database.close()


async def look_at(url: str) -> ServerHealth:
    async with connected(url) as database:
        return await read_health(database, SystemClock())


async def set_standby_names(cluster: Cluster, names: str, *, connected: int = 1) -> None:
    """Return when as many standbys have their place by the new names."""
    await cluster.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
    await cluster.execute("SELECT pg_reload_conf()")
    connection = await asyncpg.connect(cluster.url)
    while not await connection.fetchval(
        """
        SELECT count(*) >= $2 FROM pg_stat_replication
         WHERE state = 'streaming' AND (sync_state <> 'async') = $1
        """,
        names == "*",
        connected,
    ):
        await connection.execute("SELECT pg_sleep(0.05)")
    await connection.close()


def outcomes(health: ServerHealth) -> dict[str, FindingOutcome]:
    return {finding.check: finding.outcome for finding in findings(health)}


async def test_a_standby_that_is_not_synchronous_is_a_warning(primary: Cluster) -> None:
    health = await look_at(primary.url)

    assert not health.is_standby
    assert health.required_standbys == 0
    assert [standby.sync_state for standby in health.standbys] == ["async"]
    assert outcomes(health)["standbys"] is FindingOutcome.WARNING


async def test_the_only_synchronous_standby_is_a_warning_and_a_missing_one_a_failure(
    primary: Cluster,
) -> None:
    await set_standby_names(primary, "*")
    alone = await look_at(primary.url)
    await set_standby_names(primary, "another")
    missing = await look_at(primary.url)

    assert (alone.required_standbys, alone.connected_candidates) == (1, 1)
    assert outcomes(alone)["standbys"] is FindingOutcome.WARNING
    assert (missing.required_standbys, missing.connected_candidates) == (1, 0)
    assert outcomes(missing)["standbys"] is FindingOutcome.FAILURE


async def test_a_second_standby_takes_the_place_of_the_first(primary: Cluster) -> None:
    async with running_standby(primary):
        await set_standby_names(primary, "*", connected=2)
        health = await look_at(primary.url)

    assert (health.required_standbys, health.connected_candidates) == (1, 2)
    assert outcomes(health)["standbys"] is FindingOutcome.OK


async def test_a_standby_knows_that_it_is_one_and_no_worker_starts_on_it(
    pair: tuple[Cluster, Cluster],
) -> None:
    url = f"{pair[1].url}?target_session_attrs=any"

    health = await look_at(url)

    assert health.is_standby
    assert outcomes(health)["server role"] is FindingOutcome.FAILURE
    with pytest.raises(ServerIsStandby, match="is a standby"):
        await Application(settings_for(url)).startup()


async def test_a_role_that_may_not_look_is_told_what_to_grant(primary: Cluster) -> None:
    await primary.execute("CREATE ROLE modest LOGIN")
    await primary.execute("GRANT USAGE ON SCHEMA public TO modest")

    health = await look_at(primary.url.replace("postgres@", "modest@"))

    assert not health.sees_all_sessions
    finding = standbys_finding(health)
    assert finding.outcome is FindingOutcome.WARNING
    assert "pg_monitor" in (finding.remedy or "")
    assert health.disk is None


async def test_the_oldest_snapshot_is_measured_and_named(primary: Cluster) -> None:
    holder = await asyncpg.connect(primary.url, server_settings={"application_name": APPLICATION})
    async with holder.transaction(isolation="repeatable_read"):
        pid = await holder.fetchval("SELECT pg_backend_pid() FROM pg_current_xact_id_if_assigned()")
        for _ in range(3):
            await primary.execute("SELECT pg_current_xact_id()")
        health = await look_at(primary.url)
    await holder.close()
    after = await look_at(primary.url)

    assert health.snapshots.seconds > 0
    assert health.snapshots.transactions >= 3
    assert health.snapshots.holder == f"process {pid} ({APPLICATION})"
    assert after.snapshots.transactions == 0


async def test_free_disk_is_known_where_the_data_can_be_read(primary: Cluster) -> None:
    folder = primary.folder / "data"
    system = os.statvfs(folder) if os.access(folder / "postmaster.pid", os.R_OK) else None

    health = await look_at(primary.url)

    if system is None:
        assert health.disk is None
    else:
        assert health.disk is not None
        assert health.disk.total_bytes == system.f_blocks * system.f_frsize
        assert 0 < health.disk.free_bytes <= health.disk.total_bytes
    assert health.size_bytes > 1_000_000


async def test_another_server_at_the_same_path_is_not_measured(primary: Cluster) -> None:
    file = primary.folder / "data" / "postmaster.pid"
    written = file.read_text(encoding="utf-8")
    lines = written.splitlines()
    file.write_text("\n".join([*lines[:2], "1000000000", *lines[3:]]) + "\n", encoding="utf-8")

    health = await look_at(primary.url)

    file.write_text(written, encoding="utf-8")
    assert health.disk is None


async def test_days_ahead_end_before_the_first_gap(primary: Cluster) -> None:
    whole = await look_at(primary.url)
    gap = datetime.now(UTC) + timedelta(days=3)
    table = f"requests_{gap:%Y%m%d}"

    await primary.execute(f"ALTER TABLE requests DETACH PARTITION {table}")
    broken = await look_at(primary.url)
    await primary.execute(f"DROP TABLE {table}")
    today = f"evaluations_{datetime.now(UTC):%Y%m%d}"
    await primary.execute(f"DROP TABLE {today}")
    without_today = await look_at(primary.url)

    assert set(whole.days_ahead.values()) == {7}
    assert broken.days_ahead[DailyTable.REQUESTS] == 2
    assert broken.days_ahead[DailyTable.LEDGER_ENTRIES] == 7
    assert without_today.days_ahead[DailyTable.EVALUATIONS] == -1


async def test_a_watch_sets_metrics_and_logs_each_change_once(
    primary: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="tollhouse.storage")
    async with connected(primary.url) as database:
        watch = HealthWatch(database, HeldClock(datetime.now(UTC) - timedelta(seconds=100)))
        await set_standby_names(primary, "another")
        await watch.look()
        begun = logged(caplog)
        await watch.look()
        again = logged(caplog)
        page = registry.exposition(None).decode()
        await primary.execute("ALTER SYSTEM RESET synchronous_standby_names")
        async with running_standby(primary):
            await set_standby_names(primary, "*", connected=2)
            await watch.look()
        ended = logged(caplog)[len(again) :]
        await HealthWatch(database).look()
        other = registry.exposition(None).decode()

    assert ("database_check_fails", "standbys") in begun
    assert ("database_check_fails", "clock") in begun
    assert again == begun
    assert ended == [("database_check_passes", "standbys")]
    assert 'tollhouse_database_synchronous_standbys{state="required"} 1.0' in page
    assert 'tollhouse_database_synchronous_standbys{state="connected"} 0.0' in page
    assert 'tollhouse_database_synchronous_commit{level="on"} 1.0' in page
    assert 'tollhouse_database_synchronous_commit{level="off"} 0.0' in page
    assert "tollhouse_database_is_standby 0.0" in page
    assert 'tollhouse_partition_days_ahead{table="ledger_entries"} 7.0' in page
    assert 99 < value(page, "tollhouse_database_clock_difference_seconds") < 200
    assert 'tollhouse_database_synchronous_standbys{state="required"} 1.0' in other
    assert abs(value(other, "tollhouse_database_clock_difference_seconds")) < 1
    assert value(page, "tollhouse_database_size_bytes") > 1_000_000


async def test_a_watch_tells_a_server_that_is_away_or_refuses_changes() -> None:
    async with running_cluster() as alone, connected(alone.url) as database:
        watch = HealthWatch(database)
        await alone.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        await alone.execute("SELECT pg_reload_conf()")
        await look_until(watch, "tollhouse_database_is_read_only 1.0")
        readable = registry.exposition(None).decode()
        await alone.kill()
        with pytest.raises(DatabaseUnavailable):
            await watch.look()
        away = registry.exposition(None).decode()

    assert "tollhouse_database_up 1.0" in readable
    assert "tollhouse_database_up 0.0" in away


async def look_until(watch: HealthWatch, line: str) -> None:
    """Sessions take a setting over between two statements."""
    async with asyncio.timeout(SECONDS_MAX):
        while line not in registry.exposition(None).decode():
            await watch.look()


async def test_an_older_primary_that_is_back_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="tollhouse.storage")
    async with running_cluster() as old, running_standby(old) as new:
        hosts = f"127.0.0.1:{old.port},127.0.0.1:{new.port}"
        async with connected(f"postgresql://postgres@{hosts}/postgres") as database:
            watch = HealthWatch(database)
            await watch.look()
            await old.kill()
            await new.promote()
            await look_again(watch)
            promoted = histories(caplog)
            page = registry.exposition(None).decode()
            await new.kill()
            await old.start()
            await look_again(watch)
            history = await read_history(database)

    assert promoted == []
    assert history is not None
    series = f'tollhouse_database_timeline{{system="{history.system_identifier}"}}'
    assert value(page, series) == 2
    assert history.timeline == 1
    assert value(registry.exposition(None).decode(), series) == 1
    (reason,) = histories(caplog)
    assert "timeline 1, and 2 was used before" in reason


async def look_again(watch: HealthWatch) -> None:
    """The first look may find that the connection is gone."""
    with suppress(DatabaseUnavailable):
        await watch.look()
        return
    await watch.look()


def histories(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        vars(record)["reason"]
        for record in caplog.records
        if record.message == "database_check_fails" and vars(record)["check"] == "history"
    ]


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.message, vars(record)["check"]) for record in caplog.records]


def value(page: str, series: str) -> float:
    (line,) = [line for line in page.splitlines() if line.startswith(f"{series} ")]
    return float(line.rpartition(" ")[2])
