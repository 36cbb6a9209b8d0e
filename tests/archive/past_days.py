"""Days with records and ledger entries, to be archived, and what is known of them."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import partial

from tests.activity.records import Customer, make_days
from tests.ledger.direct_ledger import DirectLedger, open_ledger
from tests.ledger.past import days_ago, enter_past
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.activity.recorder import RequestRecorder
from tollhouse.archive import service
from tollhouse.archive.files import ArchiveFiles
from tollhouse.archive.types import ArchivedTable, DayManifest
from tollhouse.ledger import partitions as ledger_days
from tollhouse.storage.database import Database

KEPT_DAYS = 30
OLD_DAYS = (42, 41)
REQUESTS_PER_DAY = 40
AMOUNT = 1_250_000


@dataclass(frozen=True)
class PastDays:
    """One organization with requests on two old days and on one that stays."""

    ledger: DirectLedger
    customer: Customer

    @property
    def database(self) -> Database:
        return self.ledger.org.database


async def past_days(org: OrganizationFixture, database_url: str) -> PastDays:
    ledger = await open_ledger(org, database_url)
    customer = Customer(org.organization_id, ledger.project_id, ledger.key_id)
    recorder = RequestRecorder(org.database, waiting_records_max=1_000)
    for days in (*OLD_DAYS, 1):
        noon = datetime.combine(days_ago(days), time(12), UTC)
        await make_days(org.database, noon, noon)
        for number in range(REQUESTS_PER_DAY):
            recorder.record(customer.record(noon + timedelta(minutes=number)))
        await enter_past(ledger, days_ago(days), AMOUNT)
        await enter_past(ledger, days_ago(days), AMOUNT, model="another/model")
    await recorder.write()
    return PastDays(ledger, customer)


async def archive_all(database: Database, files: ArchiveFiles) -> list[DayManifest]:
    """What `tollhouse archive run` does."""
    moved: list[DayManifest] = []
    for table in ArchivedTable:
        is_ledger = table is ArchivedTable.LEDGER_ENTRIES
        close = partial(ledger_days.close, database) if is_ledger else None
        for partition in await service.older_than(database, table, days_kept=KEPT_DAYS):
            day = await service.archive(database, files, partition, prepare=close)
            if day is not None:
                moved.append(day)
    return moved


async def archived(database: Database) -> dict[tuple[ArchivedTable, date], DayManifest]:
    """All archived days that have rows."""
    return {
        (table, day.day): day
        for table in ArchivedTable
        for day in await service.find(database, table, date.min, date.max)
        if day.total.rows
    }
