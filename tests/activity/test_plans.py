"""How records are found among a hundred thousand: by an index, in as few days as can be.

On a server of its own, whose log has every plan with what was really done.
"""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import asyncpg
import pytest
import pytest_asyncio

from tests.activity.records import Customer, customer_of, make_days
from tests.identity.waiting import until
from tests.storage.cluster import Cluster, running_cluster
from tests.support.gateway import settings_for
from tests.support.organization_fixture import new_organization_fixture
from tollhouse.activity import rules, service
from tollhouse.activity.recorder import RequestRecorder
from tollhouse.activity.search import EXAMINED_MAX
from tollhouse.activity.types import RecordFilter, RecordGrouping, RecordPage, RequestRecord
from tollhouse.app import connect
from tollhouse.storage import migrate
from tollhouse.storage.database import Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS = 100_000
DAYS = 5
ORGANIZATIONS = 4
SCAN = re.compile(
    r"(?P<kind>Seq|Index|Index Only|Bitmap Heap) Scan .*?"
    r"on (?P<table>requests_\d{8}|request_hours) .*\((?P<done>never executed|actual .*)\)"
)


@dataclass(frozen=True)
class Archive:
    """Many requests of a few organizations, over some days."""

    cluster: Cluster
    database: Database
    customers: list[Customer]
    records: list[RequestRecord]

    def of(self, customer: Customer) -> list[RequestRecord]:
        """Newest first."""
        own = [r for r in self.records if r.organization_id == customer.organization_id]
        return sorted(own, key=lambda record: record.request_id, reverse=True)


@dataclass(frozen=True)
class Plan:
    """What the log says of the statements that were run since a mark in it."""

    text: str

    @property
    def touched(self) -> list[str]:
        """The tables that were read, in order; those of days once for each visit."""
        found = SCAN.finditer(self.text)
        return [match["table"] for match in found if match["done"] != "never executed"]

    @property
    def kinds(self) -> set[str]:
        return {match["kind"] for match in SCAN.finditer(self.text)}

    @property
    def has_sort(self) -> bool:
        return "Sort Key" in self.text


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def archive() -> AsyncIterator[Archive]:
    async with running_cluster() as cluster:
        await migrate.migrate(cluster.url)
        settings = settings_for(cluster.url)
        database = await connect(settings)
        try:
            worlds = [await new_organization_fixture(database) for _ in range(ORGANIZATIONS)]
            customers = [await customer_of(org) for org in worlds]
            yield await _filled(cluster, database, customers)
        finally:
            await database.close()


async def _filled(cluster: Cluster, database: Database, customers: list[Customer]) -> Archive:
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    first = noon - timedelta(days=DAYS)
    await make_days(database, first, noon)
    records: list[RequestRecord] = []
    for number in range(ROWS):
        at = first + timedelta(milliseconds=number * DAYS * 86_400_000 // ROWS)
        status = 503 if number % 1_000 < ORGANIZATIONS else 200
        code = "rare" if number % 10_000 < ORGANIZATIONS else None
        facts = {"status": status, "error_code": code}
        records.append(customers[number % ORGANIZATIONS].record(at, **facts))
    recorder = RequestRecorder(database, waiting_records_max=ROWS)
    for record in records:
        recorder.record(record)
    await recorder.write()
    connection = await asyncpg.connect(cluster.url)
    await connection.execute("ALTER SYSTEM SET auto_explain.log_analyze = on")
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()
    await until(partial(_logs_rows, database))
    return Archive(cluster, database, customers, records)


async def _logs_rows(database: Database) -> bool:
    """Whether the session of the pool has heard of the setting."""
    rows = await database.fetch_all("SHOW auto_explain.log_analyze")
    return rows[0][0] == "on"


class Log:
    """Reads what the server logs inside of the block."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._begun = len(cluster.log())

    def plan(self) -> Plan:
        return Plan(self._cluster.log()[self._begun :])


async def page(
    archive: Archive, customer: Customer, only: RecordFilter, after: RequestRecord | None = None
) -> RecordPage:
    async with archive.database.transaction() as tx:
        return await service.page(
            tx,
            customer.organization_id,
            only,
            after=None if after is None else after.request_id,
            limit=20,
        )


@pytest.mark.parametrize("times", [1, 10])
async def test_a_lookup_touches_the_one_day_of_its_id(archive: Archive, times: int) -> None:
    """Ten times: by then the server has one plan for all IDs."""
    log = Log(archive.cluster)
    records = archive.records[:: ROWS // times][:times]
    for record in records:
        async with archive.database.transaction() as tx:
            mine = await service.retrieve(tx, record.organization_id, record.request_id)
            anybodys = await service.find(tx, record.request_id)
        assert mine == anybodys == record

    plan = log.plan()
    days = [f"requests_{record.started_at:%Y%m%d}" for record in records]
    assert plan.touched == [day for day in days for _ in range(2)]
    assert "Seq" not in plan.kinds


@pytest.mark.parametrize("times", [1, 10])
async def test_the_latest_are_read_from_the_end_of_an_index(archive: Archive, times: int) -> None:
    customer = archive.customers[1]
    log = Log(archive.cluster)
    latest = archive.of(customer)[:20]
    for _ in range(times):
        found = await page(archive, customer, RecordFilter())
        assert list(found.records) == latest

    plan = log.plan()
    newest = f"requests_{latest[-1].started_at:%Y%m%d}"
    assert min(plan.touched) == newest, "days before it are not visited"
    assert "Seq" not in plan.kinds
    assert not plan.has_sort


async def test_a_page_in_the_past_does_not_visit_the_days_after_it(archive: Archive) -> None:
    customer = archive.customers[0]
    records = archive.of(customer)
    after = records[len(records) // 2]
    log = Log(archive.cluster)

    found = await page(archive, customer, RecordFilter(), after)

    position = records.index(after)
    assert list(found.records) == records[position + 1 : position + 21]
    assert max(log.plan().touched) == f"requests_{after.started_at:%Y%m%d}"


async def test_failures_and_keys_are_found_along_their_own_indexes(archive: Archive) -> None:
    customer = archive.customers[2]
    failures = [record for record in archive.of(customer) if record.status == 503]
    log = Log(archive.cluster)

    failed = await page(archive, customer, RecordFilter(statuses=rules.statuses("5xx")))
    plan = log.plan()

    assert list(failed.records) == failures[:20]
    assert "organization_id_day_request_id_idx" in plan.text
    assert not plan.has_sort
    log = Log(archive.cluster)
    of_key = await page(archive, customer, RecordFilter(api_key_id=customer.api_key_id))
    plan = log.plan()
    assert list(of_key.records) == archive.of(customer)[:20]
    assert "organization_id_api_key_id_day_request_id_idx" in plan.text
    assert not plan.has_sort


async def test_error_codes_are_found_along_their_own_index(archive: Archive) -> None:
    customer = archive.customers[1]
    expected = [record for record in archive.of(customer) if record.error_code == "rare"]
    log = Log(archive.cluster)

    found = await page(archive, customer, RecordFilter(error_code="rare"))
    plan = log.plan()

    assert list(found.records) == expected
    assert "organization_id_error_code_day_request_id_idx" in plan.text
    assert "Seq" not in plan.kinds
    assert not plan.has_sort


@pytest.mark.parametrize("times", [1, 10])
async def test_a_range_of_time_visits_only_its_days(archive: Archive, times: int) -> None:
    customer = archive.customers[0]
    records = archive.of(customer)
    end = records[len(records) // 2].started_at
    start = end - timedelta(hours=1)
    expected = [record for record in records if start <= record.started_at < end]
    log = Log(archive.cluster)

    for _ in range(times):
        only = RecordFilter(start=start, end=end, model="nobody asked for this")
        assert (await page(archive, customer, only)).has_more is False
        found = await page(archive, customer, RecordFilter(start=start, end=end))
        assert list(found.records) == expected[:20]

    plan = log.plan()
    assert set(plan.touched) <= {f"requests_{at:%Y%m%d}" for at in (start, end)}
    assert "Seq" not in plan.kinds
    assert not plan.has_sort


async def test_chosen_requests_are_looked_up_one_by_one(archive: Archive) -> None:
    customer = archive.customers[2]
    chosen = archive.of(customer)[::5_000]
    log = Log(archive.cluster)

    only = RecordFilter(request_ids=tuple(record.request_id for record in chosen))
    found = await page(archive, customer, only)

    assert list(found.records) == chosen
    plan = log.plan()
    assert plan.kinds == {"Index"}
    assert "Rows Removed by Filter" not in plan.text


async def test_a_search_for_what_is_not_there_gives_up_and_can_be_gone_on_with(
    archive: Archive,
) -> None:
    customer = archive.customers[3]
    records = archive.of(customer)
    log = Log(archive.cluster)
    only = RecordFilter(model="nobody asked for this")

    first = await page(archive, customer, only)
    assert (first.records, first.has_more) == ((), True)
    assert first.last_id == records[EXAMINED_MAX - 1].request_id
    pages = 1
    last_id = first.last_id
    while True:
        async with archive.database.transaction() as tx:
            found = await service.page(tx, customer.organization_id, only, after=last_id, limit=20)
        pages += 1
        if not found.has_more:
            break
        last_id = found.last_id
    assert pages == ROWS // ORGANIZATIONS // EXAMINED_MAX + 1
    assert "Seq" not in log.plan().kinds


@pytest.mark.parametrize("grouping", [None, *RecordGrouping])
async def test_hours_are_read_by_their_index(
    archive: Archive, grouping: RecordGrouping | None
) -> None:
    customer = archive.customers[0]
    now = datetime.now(UTC)
    start = int((now - timedelta(days=2)).timestamp())
    log = Log(archive.cluster)

    async with archive.database.transaction() as tx:
        hours = service.hours(start, None, now=now)
        tallies = await service.tallies(tx, customer.organization_id, hours, grouping)

    expected = [
        record
        for record in archive.of(customer)
        if hours.start <= record.started_at.timestamp() < hours.end
    ]
    assert sum(tally.requests for tally in tallies) == len(expected)
    plan = log.plan()
    assert plan.touched == ["request_hours"]
    assert "Seq" not in plan.kinds
