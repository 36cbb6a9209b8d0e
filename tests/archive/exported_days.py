"""Days to be exported, and an export as the nightly process does it."""

from datetime import UTC, datetime, time, timedelta

import duckdb
import msgspec

from tests.activity.records import Customer, make_days
from tests.ledger.direct_ledger import DirectLedger, open_ledger
from tests.ledger.past import days_ago, enter_past
from tests.support.gateway import settings_for
from tests.support.organization_fixture import OrganizationFixture
from tollhouse import nightly_export
from tollhouse.activity.recorder import RequestRecorder
from tollhouse.archive.types import DayManifest
from tollhouse.settings import ExportSettings, Settings
from tollhouse.storage.database import Database

DAYS = (12, 4, 3)
"""Days ago: one that is too old to be compared again every night, and two that are not."""
RECORDS = 30
AMOUNT = 1_250_000_000_007


def settings_with(database_url: str, url: str) -> Settings:
    return msgspec.structs.replace(settings_for(database_url), exports=ExportSettings(url=url))


async def finished_days(org: OrganizationFixture, database_url: str) -> DirectLedger:
    """An organization with two costs and some records on each day."""
    ledger = await open_ledger(org, database_url)
    customer = Customer(org.organization_id, ledger.project_id, ledger.key_id)
    recorder = RequestRecorder(org.database, waiting_records_max=1_000)
    for days in DAYS:
        noon = datetime.combine(days_ago(days), time(12), UTC)
        await make_days(org.database, noon, noon)
        for number in range(RECORDS):
            recorder.record(customer.record(noon + timedelta(minutes=number)))
        await enter_past(ledger, days_ago(days), AMOUNT)
        await enter_past(ledger, days_ago(days), 2 * AMOUNT, model="another/model")
    await recorder.write()
    return ledger


async def export(database: Database, settings: Settings) -> list[DayManifest]:
    """The days with rows that were written."""
    written = await nightly_export.export(database, None, settings)
    return [day for day in written if day.total.rows]


def sums(path: str, table: str, column: str) -> tuple[int, int]:
    """The rows of all files of a table, and the sum of a column, as DuckDB reads them."""
    # DuckDB sums 64-bit integers in 128 bits.
    found = duckdb.execute(f"SELECT count(*), sum({column}) FROM '{path}/{table}/*/*.parquet'")  # noqa: S608 - a path
    ((rows, total),) = found.fetchall()
    return int(rows), int(total)
