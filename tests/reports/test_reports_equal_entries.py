"""Every grouping and filter gives what the entries add up to, one by one.

`TOLLHOUSE_EVENTS` says how many events there are; 1,000,000 is what the project answers for.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import date, datetime, timedelta
from itertools import chain, combinations
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from tests.reports import events
from tests.reports.brute_force import Asked, Entries
from tests.reports.past import COSTS, UNSETTLED, Past, opened
from tests.support.gateway import Gateway
from tests.support.organization_fixture import new_organization_fixture
from tollhouse.storage.database import Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

FILLING_SECONDS_MAX = 3_600
CLOSED_DAYS = (date(2025, 2, 28), date(2025, 3, 1), date(2025, 6, 15))
BEGIN, END = (
    int(events.midnight(day).timestamp())
    for day in (events.FIRST_DAY, events.LAST_DAY + timedelta(days=1))
)


def instant(text: str) -> int:
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp())


def groupings(*names: str) -> list[frozenset[str]]:
    sizes = range(len(names) + 1)
    return [*map(frozenset, chain(*(combinations(names, size) for size in sizes)))]


RANGES = {
    "all": (BEGIN, END),
    "beyond both ends": (BEGIN - 10 * 86400, END + 10 * 86400),
    "cut on the hour": (instant("2025-02-27T07:00:00"), instant("2025-06-16T22:00:00")),
    "cut to the second": (instant("2025-04-30T23:59:59"), instant("2025-10-31T00:00:01")),
    "inside a day": (instant("2025-07-31T03:20:10"), instant("2025-07-31T19:40:50")),
    "inside an hour": (instant("2025-08-31T03:20:10"), instant("2025-08-31T03:59:59")),
    "around midnight": (instant("2025-11-30T23:30:00"), instant("2025-12-01T00:30:00")),
    "leap to the new year": (instant("2025-12-31T12:00:00"), instant("2026-01-01T12:00:00")),
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def past(database: Database, gateway: Gateway, database_url: str) -> AsyncIterator[Past]:
    """400 days across month ends, settled in no order of time; three days past retention."""
    connection = await asyncpg.connect(database_url, command_timeout=FILLING_SECONDS_MAX)
    org = await new_organization_fixture(database)
    async with opened(org, gateway, connection) as made:
        await events.make_partitions(connection, events.FIRST_DAY, events.LAST_DAY)
        since = events.midnight(events.FIRST_DAY)
        await events.hold(
            *(connection, org.organization_id, made.keys, events.EVENTS),
            since=since,
            until=since + timedelta(days=events.DAYS),
        )
        await events.resolve(connection, org.organization_id)
        await connection.execute("ANALYZE")
        for day in CLOSED_DAYS:
            await events.close_day(connection, day)
        yield made
    await connection.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def entries(past: Past) -> Entries:
    return await past.entries()


def filters(past: Past) -> list[dict[str, Any]]:
    projects, keys = ([*map(str, ids)] for ids in (past.keys.project_ids, past.keys.api_key_ids))
    return [
        {},
        {"project_ids": frozenset({projects[0], projects[-1]})},
        {"api_key_ids": frozenset(keys[1:5])},
        {"project_ids": frozenset({projects[0]}), "api_key_ids": frozenset(keys[2:4])},
    ]


async def test_there_is_something_of_everything(entries: Entries) -> None:
    total = sum(len(lines) for lines in entries.costs(Asked(BEGIN, END)).values())

    assert events.EVENTS * 80 < 100 * len(entries.rows) < events.EVENTS * 95
    assert total > 0.9 * min(events.DAYS, events.EVENTS)


@pytest.mark.guarantee("T7", "I6")
@pytest.mark.parametrize("name", RANGES)
async def test_costs_equal_the_entries(past: Past, entries: Entries, name: str) -> None:
    start, end = RANGES[name]
    for group_by in groupings("project_id", "api_key_id", "line_item"):
        for only in filters(past):
            asked = Asked(start, end, group_by=group_by, **only)
            assert await past.costs(asked) == entries.costs(asked), asked


@pytest.mark.guarantee("T7", "I6")
@pytest.mark.parametrize("name", RANGES)
async def test_daily_usage_equals_the_entries(past: Past, entries: Entries, name: str) -> None:
    start, end = RANGES[name]
    for group_by in groupings("project_id", "api_key_id", "model"):
        for only in filters(past):
            asked = Asked(start, end, group_by=group_by, **only)
            assert await past.usage(asked) == entries.usage(asked), asked


@pytest.mark.guarantee("T7", "I6")
@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2025-03-02T23:30:00", "2025-03-05T00:00:00"),
        ("2025-12-31T10:10:10", "2026-01-01T20:20:20"),
        ("2025-08-31T03:20:10", "2025-08-31T03:59:59"),
    ],
)
async def test_hourly_usage_equals_the_entries(
    past: Past, entries: Entries, start: str, end: str
) -> None:
    for group_by in groupings("project_id", "api_key_id", "model"):
        asked = Asked(instant(start), instant(end), group_by=group_by, width="1h")
        assert await past.usage(asked, limit=7) == entries.usage(asked), asked


@pytest.mark.guarantee("T7", "I6")
@pytest.mark.parametrize("limit", [1, 7, 37])
async def test_pages_of_any_size_make_the_same_report(
    past: Past, entries: Entries, limit: int
) -> None:
    start, end = RANGES["cut to the second"]
    asked = Asked(start, end, group_by=frozenset({"api_key_id", "line_item"}))

    assert await past.costs(asked, limit=limit) == entries.costs(asked)


@pytest.mark.parametrize("day", CLOSED_DAYS, ids=str)
async def test_a_cut_inside_an_hour_of_a_closed_day_is_refused_and_never_rounded(
    past: Past, day: date
) -> None:
    midnight = int(events.midnight(day).timestamp())
    cuts = {
        "start_time": (midnight + 3601, midnight + 10 * 86400),
        "end_time": (midnight - 10 * 86400, midnight + 86399),
    }
    for param, (start, end) in cuts.items():
        answer = await past.client.get(COSTS, params={"start_time": start, "end_time": end})

        assert answer.status_code == 400
        error = answer.json()["error"]
        assert (error["code"], error["param"]) == ("invalid_value", param)


@pytest.mark.guarantee("T7", "I6")
async def test_late_settlements_change_the_day_of_admission_even_between_pages(past: Past) -> None:
    """What is settled while somebody pages is in the pages that follow, and never twice."""
    asked = Asked(BEGIN, END, group_by=frozenset({"project_id"}))
    since = events.midnight(events.LAST_DAY) - timedelta(minutes=5)
    # Admitted around midnight, settled whenever it comes to it.
    await events.hold(
        *(past.connection, past.organization_id, past.keys, 200),
        since=since,
        until=since + timedelta(minutes=10),
    )
    before = (await past.entries()).costs(asked)

    async def settle() -> None:
        await asyncio.sleep(0)
        await events.resolve(past.connection, past.organization_id)

    settling = asyncio.create_task(settle())
    seen = await past.costs(asked, limit=20)
    await settling
    after = (await past.entries()).costs(asked)

    for bucket, lines in seen.items():
        assert lines in (before[bucket], after[bucket]), "a bucket is seen at one instant"
    assert before != after
    assert await past.costs(asked) == after


async def test_the_header_counts_what_is_unsettled_in_the_range(past: Past) -> None:
    await events.mark_unsettled(past.connection, past.organization_id)
    start, end = RANGES["cut to the second"]
    for only in filters(past):
        asked = Asked(start, end, **only)
        expected = await past.connection.fetchval(
            """
            SELECT count(*) FROM unsettled_holds
             WHERE organization_id = $1 AND admitted_at >= to_timestamp($2)
               AND admitted_at < to_timestamp($3)
               AND ($4::text[] IS NULL OR project_id::text = ANY($4))
               AND ($5::text[] IS NULL OR api_key_id::text = ANY($5))
            """,
            *(past.organization_id, start, end),
            *(list(ids) if ids else None for ids in (asked.project_ids, asked.api_key_ids)),
        )
        answer = await past.client.get(COSTS, params=asked.parameters())

        assert answer.headers[UNSETTLED] == str(expected)
