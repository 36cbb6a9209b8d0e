"""Exported costs, as DuckDB reads them, equal the reports of the API to the pico-dollar.

`TOLLHOUSE_EXPORT_EVENTS` says how many requests there are; 1,000,000 is what the project answers
for.
"""

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import duckdb
import msgspec
import pytest
import pytest_asyncio

from tests.reports import events
from tests.reports.brute_force import Asked, Lines
from tests.reports.past import Past, opened
from tests.support.gateway import Gateway, settings_for
from tests.support.organization_fixture import new_organization_fixture
from tollhouse import nightly_export
from tollhouse.archive.exporting import ExportRange
from tollhouse.keys.secrets import Peppers
from tollhouse.settings import ExportSettings
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
                             0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, NULL)::ledger_resolution
                        ) AS resolutions
          FROM open_hold HAVING count(*) > 0) c
 CROSS JOIN LATERAL ledger_settle_batch(resolutions, false)
"""
_RECORDS = """
INSERT INTO requests (organization_id, day, request_id, project_id, api_key_id, operation,
                      started_at, status, model, cost_pico, is_stream, total_ms)
SELECT organization_id, admitted_day, reservation_id, project_id, api_key_id,
       'createChatCompletion', admitted_at, 200, model, posted_pico, false, 1
  FROM ledger_entries
 WHERE organization_id = $1 AND phase = 1
"""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def past(
    database: Database, peppers: Peppers, gateway: Gateway, database_url: str
) -> AsyncIterator[Past]:
    """Eight days on which every request has its final cost, and a record."""
    connection = await asyncpg.connect(database_url, command_timeout=FILLING_SECONDS_MAX)
    org = await new_organization_fixture(database, peppers)
    async with opened(org, gateway, connection) as made:
        await events.make_partitions(connection, SINCE.date(), UNTIL.date())
        await connection.execute(
            "SELECT make_day_partition('requests', $1::date + n) FROM generate_series(0, 8) n",
            SINCE.date(),
        )
        await events.hold(
            *(connection, org.organization_id, made.keys, EVENTS), since=SINCE, until=UNTIL
        )
        await events.resolve(connection, org.organization_id)
        while await connection.fetchval(_VOID_THE_REST, org.organization_id):
            pass
        await connection.execute(_RECORDS, org.organization_id)
        await connection.execute("ANALYZE")
        yield made
    await connection.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def folder(
    past: Past, database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Path]:
    found = tmp_path_factory.mktemp("exports")
    settings = msgspec.structs.replace(
        settings_for(database_url), exports=ExportSettings(url=found.as_uri())
    )
    days = ExportRange(first=SINCE.date(), last=UNTIL.date())
    await nightly_export.export(past.org.database, None, settings, days)
    yield found


def _rows(statement: str) -> list[tuple[object, ...]]:
    return duckdb.execute(statement).fetchall()


@pytest.mark.guarantee("T7")
async def test_exported_costs_equal_the_report_by_day_and_line_item(
    past: Past, folder: Path
) -> None:
    parts = {
        "input": ("input_tokens - cache_write_tokens", "input_pico - cache_write_pico"),
        "cache write": ("cache_write_tokens", "cache_write_pico"),
        "cached input": ("cached_input_tokens", "cached_input_pico"),
        "output": ("output_tokens", "output_pico"),
        "image": ("images", "image_pico"),
        "request": ("0 * images", "request_pico"),
    }
    lines = " UNION ALL ".join(
        f"""
        SELECT epoch(admitted_day)::bigint, project_id, api_key_id, model || ', {part}',
               sum({amount}) AS amount
          FROM '{folder}/costs/*/*.parquet'
         GROUP BY ALL HAVING sum({quantity}) > 0 OR sum({amount}) > 0
        """  # noqa: S608 - constants
        for part, (quantity, amount) in parts.items()
    )

    exported: dict[int, Lines] = {day: {} for day in range(START, END, 86_400)}
    for day, project_id, api_key_id, line_item, amount in _rows(lines):
        exported[int(str(day))][str(project_id), str(api_key_id), str(line_item)] = int(str(amount))

    assert exported == await past.costs(Asked(start=START, end=END, group_by=GROUPING))


@pytest.mark.guarantee("T7")
async def test_exported_costs_and_records_have_the_sums_of_the_ledger(
    past: Past, folder: Path
) -> None:
    ((rows, total),) = _rows(
        f"SELECT count(*), sum(posted_pico) FROM '{folder}/costs/*/*.parquet'"  # noqa: S608 - a path
    )
    ((records, recorded),) = _rows(
        f"SELECT count(*), sum(cost_pico) FROM '{folder}/requests/*/*.parquet'"  # noqa: S608 - a path
    )

    ledger = await past.connection.fetchrow(
        """
        SELECT count(*) FILTER (WHERE kind = 'post' OR posted_pico > 0), sum(posted_pico)
          FROM ledger_entries WHERE organization_id = $1 AND phase = 1
        """,
        past.organization_id,
    )
    account = await past.connection.fetchval(
        "SELECT settled_pico FROM accounts WHERE organization_id = $1", past.organization_id
    )
    assert ledger is not None
    assert (rows, total) == (ledger[0], int(ledger[1]))
    assert (records, recorded) == (EVENTS, int(ledger[1]))
    assert total == account


@pytest.mark.guarantee("T7")
async def test_the_focus_file_has_the_same_sum(past: Past, folder: Path) -> None:
    file = folder / "focus.csv"
    path = "/manage/v1/organization/costs/focus"
    query = {"start_time": START, "end_time": END}
    async with past.client.stream("GET", path, params=query) as answer:
        with file.open("wb") as written:
            async for piece in answer.aiter_bytes():
                written.write(piece)

    ((focus,),) = _rows(
        f"""
        SELECT sum(CAST(BilledCost AS DECIMAL(38, 12)) * 1000000000000)::HUGEINT
          FROM read_csv('{file}', all_varchar = true)
        """  # noqa: S608 - a path
    )

    ((total,),) = _rows(f"SELECT sum(posted_pico) FROM '{folder}/costs/*/*.parquet'")  # noqa: S608 - a path
    assert int(str(focus)) == int(str(total))
