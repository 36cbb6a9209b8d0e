"""Exported costs, as DuckDB reads them, equal reports and ledger to the pico-dollar.

`TOLLHOUSE_EXPORT_EVENTS` says how many requests there are; 1,000,000 is what the project answers
for.
"""

import os
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import duckdb
import pytest
import pytest_asyncio

from tests.reports import events
from tests.reports.brute_force import Asked, Lines
from tests.reports.past import Past, opened
from tests.support.gateway import Gateway
from tests.support.organization_fixture import new_organization_fixture
from tollhouse.storage.database import Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

EVENTS = int(os.environ.get("TOLLHOUSE_EXPORT_EVENTS", "2000"))
FILLING_SECONDS_MAX = 7_200
SINCE = datetime(2026, 4, 27, tzinfo=UTC)
UNTIL = SINCE + timedelta(days=8)
START, END = int(SINCE.timestamp()), int(UNTIL.timestamp())
GROUPING = frozenset(("project_id", "api_key_id", "line_item"))
_VOID_THE_REST = """
WITH open_hold AS (
    SELECT organization_id, reservation_id, admitted_day
      FROM ledger_entries h
     WHERE organization_id = $1 AND phase = 0
       AND NOT EXISTS (SELECT FROM ledger_entries p
                        WHERE p.organization_id = $1 AND p.admitted_day = h.admitted_day
                          AND p.reservation_id = h.reservation_id AND p.phase = 1)
     LIMIT 5000)
SELECT count(*)
  FROM (SELECT array_agg(ROW(organization_id, reservation_id, admitted_day, 'void', 0,
                             0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, NULL, NULL, 0, 0
                             )::ledger_resolution) AS resolutions
          FROM open_hold HAVING count(*) > 0) c
 CROSS JOIN LATERAL ledger_settle_batch(resolutions, false)
"""
_PICO = "(CAST(BilledCost AS DECIMAL(38, 12)) * 1000000000000)::HUGEINT"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def past(database: Database, gateway: Gateway, database_url: str) -> AsyncIterator[Past]:
    """Eight days on which every request has its final cost."""
    connection = await asyncpg.connect(database_url, command_timeout=FILLING_SECONDS_MAX)
    org = await new_organization_fixture(database)
    async with opened(org, gateway, connection) as made:
        await events.make_partitions(connection, SINCE.date(), UNTIL.date())
        await events.hold(
            *(connection, org.organization_id, made.keys, EVENTS), since=SINCE, until=UNTIL
        )
        await events.resolve(connection, org.organization_id)
        while await connection.fetchval(_VOID_THE_REST, org.organization_id):
            pass
        await connection.execute("ANALYZE")
        yield made
    await connection.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def file(past: Past, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    found = tmp_path_factory.mktemp("exports") / "focus.csv"
    path = "/manage/v1/organization/costs/focus"
    query = {"start_time": START, "end_time": END}
    async with past.client.stream("GET", path, params=query) as answer:
        with found.open("wb") as written:
            async for piece in answer.aiter_bytes():
                written.write(piece)
    yield found


def _by_day(lines: Iterable[Iterable[object]]) -> dict[int, Lines]:
    found: dict[int, Lines] = {day: {} for day in range(START, END, 86_400)}
    for day, project_id, api_key_id, line_item, amount in lines:
        found[int(str(day))][str(project_id), str(api_key_id), str(line_item)] = int(str(amount))
    return found


def _rows(statement: str) -> list[tuple[object, ...]]:
    return duckdb.execute(statement).fetchall()


@pytest.mark.guarantee("T7")
async def test_exported_and_reported_costs_equal_the_entries_by_day_and_line_item(
    past: Past, file: Path
) -> None:
    parts = {
        "input": ("input_tokens - cache_write_tokens", "input_pico - cache_write_pico"),
        "cache write": ("cache_write_tokens", "cache_write_pico"),
        "cached input": ("cached_input_tokens", "cached_input_pico"),
        "output": ("output_tokens", "output_pico"),
        "image": ("images", "image_pico"),
        "request": ("0 * images", "request_pico"),
    }
    entered = " UNION ALL ".join(
        f"""
        SELECT extract(epoch FROM admitted_day)::bigint, project_id, api_key_id,
               model || ', {part}', sum({amount})
          FROM ledger_entries
         WHERE organization_id = $1 AND phase = 1 AND (kind = 'post' OR posted_pico > 0)
         GROUP BY 1, 2, 3, 4 HAVING sum({quantity}) > 0 OR sum({amount}) > 0
        """  # noqa: S608 - constants
        for part, (quantity, amount) in parts.items()
    )
    exported = f"""
        SELECT epoch(CAST(ChargePeriodStart AS TIMESTAMPTZ))::bigint, SubAccountId, x_ApiKeyId,
               x_LineItem, sum({_PICO})
          FROM read_csv('{file}', all_varchar = true)
         GROUP BY ALL
        """  # noqa: S608 - a path

    entries = _by_day(await past.connection.fetch(entered, past.organization_id))

    assert _by_day(_rows(exported)) == entries
    assert await past.costs(Asked(start=START, end=END, group_by=GROUPING)) == entries


@pytest.mark.guarantee("T7")
async def test_exported_costs_have_the_sum_of_the_ledger(past: Past, file: Path) -> None:
    ((total,),) = _rows(f"SELECT sum({_PICO}) FROM read_csv('{file}', all_varchar = true)")  # noqa: S608 - a path

    ledger = await past.connection.fetchval(
        "SELECT sum(posted_pico) FROM ledger_entries WHERE organization_id = $1 AND phase = 1",
        past.organization_id,
    )
    account = await past.connection.fetchval(
        "SELECT settled_pico FROM accounts WHERE organization_id = $1", past.organization_id
    )
    assert int(str(total)) == int(ledger)
    assert int(str(total)) == account
