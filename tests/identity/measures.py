"""Counters of this process, what PostgreSQL counted of a database, and figures worth showing."""

import sys
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest

from tests.identity.waiting import until
from tollhouse.activity.rules import outcome
from tollhouse.observability import registry

BATCHES = "tollhouse_key_lookup_batches_total"


def counted(series: str) -> int:
    """The value of one series as the exposition shows it; 0 while it has none."""
    for line in registry.exposition(None).decode().splitlines():
        name, _, value = line.rpartition(" ")
        if name == series:
            return int(float(value))
    return 0


def lookups(outcome: str) -> int:
    return counted(f'tollhouse_key_lookups_total{{outcome="{outcome}"}}')


def answers(operation: str, status: int) -> int:
    labels = f'operation="{operation}",outcome="{outcome(status, None)}",status="{status}"'
    return counted(f"tollhouse_http_requests_total{{{labels}}}")


@dataclass(frozen=True, kw_only=True)
class DatabaseWork:
    transactions: int
    active_ms: float


async def database_work(url: str) -> DatabaseWork:
    """What backends have reported of the database so far; our own connection counts too."""
    connection = await asyncpg.connect(url)
    try:
        row = await connection.fetchrow(
            """
            SELECT xact_commit, active_time
              FROM pg_stat_database
             WHERE datname = current_database()
            """
        )
    finally:
        await connection.close()
    assert row is not None
    return DatabaseWork(transactions=row["xact_commit"], active_ms=row["active_time"])


async def database_work_of(url: str, *, since: DatabaseWork, transactions: int) -> DatabaseWork:
    """What was done since, once so many transactions are reported: a backend may wait a second."""

    async def is_reported() -> bool:
        return (await database_work(url)).transactions >= since.transactions + transactions

    await until(is_reported)
    now = await database_work(url)
    return DatabaseWork(
        transactions=now.transactions - since.transactions,
        active_ms=now.active_ms - since.active_ms,
    )


def processor_seconds(process_id: int) -> float:
    """The processor time that the first thread of a process has used, to the nanosecond."""
    schedule = Path(f"/proc/{process_id}/schedstat").read_text(encoding="ascii")
    return int(schedule.split()[0]) / 1e9


def show(capsys: pytest.CaptureFixture[str], figures: str) -> None:
    """A test that measures says what it measured."""
    with capsys.disabled():
        sys.stdout.write(f"\n{figures}\n")
