"""Two services on one database, on machines whose clocks are an hour ahead and an hour behind.

The database's clock decides everything that is counted, held, kept or expires. It is moved, so
that midnight and the end of a day come when a test wants them.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.faults.recovery import reap
from tests.identity.creations import REPLAYED, create, keys_path
from tests.identity.waiting import until
from tests.ledger.invariants import assert_conserved
from tests.support import databases
from tests.support.deployment import Deployment, chat, customer_of, offering
from tests.support.organization_fixture import OrganizationFixture
from tests.support.processes import Service, running_service
from tests.support.raw_streams import CHAT, open_stream
from tests.support.wrong_clocks import MovedClock, environment_with
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.ids import InstanceId, day_of, minted_at
from tollhouse.base.money import PICO_USD_PER_USD
from tollhouse.ledger import reaper
from tollhouse.settings import Settings
from tollhouse.storage.database import Database, Row

OFFSETS = (timedelta(hours=1), timedelta(hours=-1))
AUDIT = "/manage/v1/organization/audit"
COSTS = "/v1/organization/costs"
LIMITS = "/manage/v1/organization/spending_limits"
REQUESTS = "/manage/v1/organization/requests"
USAGE = "/manage/v1/organization/usage"
STALL = json.dumps({"script": {"cut": {"how": "stall", "after": 5}}})
DAY = timedelta(days=1)
NEAR = timedelta(seconds=30)
"""Far less than the hour by which the clocks are wrong, far more than a slow machine takes."""


@pytest.fixture
async def database_url(migrated_template: str) -> AsyncIterator[str]:
    async with databases.temporary(template=migrated_template) as url:
        await MovedClock(url).install()
        yield url


@pytest.fixture
def clock(database_url: str) -> MovedClock:
    return MovedClock(database_url)


@pytest.fixture
def turn() -> datetime:
    """The midnight before which the services start: of the day after tomorrow, by this machine."""
    return datetime.combine(datetime.now(UTC).date() + 2 * DAY, time.min, UTC)


@dataclass(frozen=True, kw_only=True)
class Site:
    """The deployments of one customer at a service that is ahead and one that is behind."""

    services: list[Service]
    ahead: Deployment
    behind: Deployment

    @property
    def both(self) -> tuple[Deployment, Deployment]:
        return self.ahead, self.behind


@pytest.fixture
async def site(
    settings: Settings,
    upstream: ScriptedUpstream,
    org: OrganizationFixture,
    clock: MovedClock,
    turn: datetime,
    tmp_path: Path,
) -> AsyncIterator[Site]:
    await clock.set(turn - timedelta(minutes=5))
    offered = offering(settings, upstream.base_url, idle_seconds=600.0)
    async with AsyncExitStack() as stack:
        services: list[Service] = []
        for number, offset in enumerate(OFFSETS):
            (folder := tmp_path / str(number)).mkdir()
            environment = environment_with(offset)
            running = running_service(offered, folder, environment=environment)
            services.append(await stack.enter_async_context(running))
        ahead = await customer_of(services[0], upstream, org)
        behind = replace(ahead, gateway=services[1])
        yield Site(services=services, ahead=ahead, behind=behind)


async def ask(deployment: Deployment) -> tuple[int, UUID]:
    async with deployment.customer() as client:
        answer = await client.post(CHAT, json=chat(max_tokens=20))
    return answer.status_code, UUID(answer.headers["x-request-id"])


async def ask_in_turns(site: Site, rounds: int, *, settled: int = 0) -> list[UUID]:
    """Ask both, each when nothing is held any more: a cap may leave room for one hold alone."""
    request_ids: list[UUID] = []
    for number, deployment in enumerate(site.both * rounds, start=settled + 1):
        status, request_id = await ask(deployment)
        assert status == 200
        await deployment.settled(number)
        request_ids.append(request_id)
    return request_ids


def assert_in_order_of_each(ids: Sequence[object]) -> None:
    """Compare the order of each service's IDs: two clocks agree only to the time of a query."""
    texts = list(map(str, ids))
    for own in (texts[::2], texts[1::2]):
        assert sorted(own) == own


async def workers_follow(database: Database, clock: MovedClock) -> None:
    """Wait until the workers have read the clock that was just moved."""
    now = await clock.now()

    async def is_so() -> bool:
        beats = await database.fetch_all("SELECT heartbeat_at FROM instances")
        assert len(beats) == len(OFFSETS)
        return all(row["heartbeat_at"] >= now for row in beats)

    await until(is_so)


async def entries(database: Database, phase: int = 0) -> Sequence[Row]:
    return await database.fetch_all(
        "SELECT * FROM ledger_entries WHERE phase = $1 ORDER BY admitted_at", phase
    )


async def get(deployment: Deployment, path: str, **params: object) -> dict[str, Any]:
    async with deployment.administrator() as client:
        answer = await client.get(path, params={name: str(each) for name, each in params.items()})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def set_day_cap(deployment: Deployment, limit_pico: int) -> dict[str, Any]:
    limit = f"{limit_pico // PICO_USD_PER_USD}.{limit_pico % PICO_USD_PER_USD:012d}"
    async with deployment.administrator() as client:
        answer = await client.put(LIMITS, json={"period": "day", "limit": {"value": limit}})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.nightly
@pytest.mark.guarantee("T8")
async def test_costs_caps_and_records_of_both_fall_into_the_databases_day_and_hour(
    site: Site, database: Database, clock: MovedClock, turn: datetime
) -> None:
    evening = await ask_in_turns(site, 3)
    settled = (await site.ahead.credit()).settled_pico_usd
    held = max(row["held_pico"] for row in await entries(database))
    for deployment in site.both:
        shown = await set_day_cap(deployment, settled + held - 1)
        assert float(shown["used"]["value"]) * PICO_USD_PER_USD == pytest.approx(settled)
    assert [(await ask(deployment))[0] for deployment in site.both] == [402, 402]

    await clock.set(turn + timedelta(seconds=5))
    await workers_follow(database, clock)
    morning = await ask_in_turns(site, 2, settled=6)

    hours = [turn - timedelta(hours=1), turn]
    await assert_in_buckets(database, hours, [6, 4])
    for deployment in site.both:
        await assert_reported(deployment, hours, [6, 4])
        await assert_listed(deployment, turn, evening, morning)
    assert_in_order_of_each([*evening, *morning])
    assert max(evening) < min(morning)
    await assert_conserved(database)


async def assert_in_buckets(database: Database, hours: list[datetime], counts: list[int]) -> None:
    """Compare the entries and both tables of sums with what each hour must have."""
    admitted = await entries(database)
    spread = [hour for hour, count in zip(hours, counts, strict=True) for _ in range(count)]
    assert [row["admitted_day"] for row in admitted] == [hour.date() for hour in spread]
    assert all(
        hour <= row["admitted_at"] < hour + timedelta(hours=1)
        for row, hour in zip(admitted, spread, strict=True)
    )
    assert all(day_of(row["reservation_id"]) == row["admitted_day"] for row in admitted)
    daily = await database.fetch_all(
        "SELECT day, sum(requests)::int FROM cost_daily GROUP BY 1 ORDER BY 1"
    )
    hourly = await database.fetch_all(
        "SELECT hour, sum(requests)::int FROM cost_hourly GROUP BY 1 ORDER BY 1"
    )
    pairs = list(zip(hours, counts, strict=True))
    assert [tuple(row) for row in daily] == [(hour.date(), count) for hour, count in pairs]
    assert [tuple(row) for row in hourly] == pairs


async def assert_reported(deployment: Deployment, hours: list[datetime], counts: list[int]) -> None:
    """Compare what each service reports: days of costs and hours of usage."""
    start = int(hours[0].timestamp()) - 3600
    costs = await get(deployment, COSTS, start_time=start // 86400 * 86400)
    found = {
        bucket["start_time"]: len(bucket["results"])
        for bucket in costs["data"]
        if bucket["results"]
    }
    assert list(found) == [int(hour.timestamp()) // 86400 * 86400 for hour in hours]
    usage = await get(deployment, USAGE, start_time=start, bucket_width="1h")
    requests = {
        bucket["start_time"]: bucket["results"][0]["requests"]
        for bucket in usage["data"]
        if bucket["results"]
    }
    assert requests == {
        int(hour.timestamp()): count for hour, count in zip(hours, counts, strict=True)
    }


async def assert_listed(
    deployment: Deployment, turn: datetime, evening: list[UUID], morning: list[UUID]
) -> None:
    """Compare the records before and after midnight, refused requests left out."""
    seconds = int(turn.timestamp())

    async def is_written() -> bool:
        page = await get(deployment, REQUESTS, status="200", limit=100)
        return len(page["data"]) == len(evening) + len(morning)

    await until(is_written)
    early = await get(deployment, REQUESTS, status="200", limit=100, end_time=seconds)
    late = await get(deployment, REQUESTS, status="200", limit=100, start_time=seconds)
    for listed, asked in ((early, evening), (late, morning)):
        assert [record["id"] for record in listed["data"]] == sorted(map(str, asked), reverse=True)


@pytest.mark.guarantee("T8")
async def test_holds_of_both_live_as_long_as_the_database_says(
    site: Site, database: Database, clock: MovedClock, upstream: ScriptedUpstream
) -> None:
    before = await clock.now()
    with ExitStack() as stack:
        for service in site.services:
            stream = await open_stream(
                service.address, site.ahead.key.value, CHAT, chat(STALL, max_tokens=100)
            )
            stack.callback(stream.writer.close)
            assert stream.status == 200
        await asyncio.gather(*(exchange.stall() for exchange in upstream.seen))
        after = await clock.now()

        holds = await entries(database)
        instances = await database.fetch_all("SELECT heartbeat_at FROM instances")
        assert [before <= row["admitted_at"] <= after for row in holds] == [True, True]
        (lifetime,) = {row["deadline_at"] - row["admitted_at"] for row in holds}
        assert lifetime > timedelta(minutes=1)
        assert [abs(row["heartbeat_at"] - after) < NEAR for row in instances] == [True, True]

        await reaper.run(database)
        assert await unsettled(database) == []
        marked: list[UUID] = []
        for row in holds:
            await reap(database, InstanceId(row["instance_id"]))
            marked.append(row["reservation_id"])
            assert await unsettled(database) == sorted(marked)


async def unsettled(database: Database) -> list[UUID]:
    rows = await database.fetch_all("SELECT reservation_id FROM unsettled_holds ORDER BY 1")
    return [row["reservation_id"] for row in rows]


@pytest.mark.guarantee("T8")
async def test_keys_expire_at_both_when_the_database_says(
    site: Site, org: OrganizationFixture, clock: MovedClock
) -> None:
    now = await clock.now()
    expected = {timedelta(minutes=20): 200, timedelta(minutes=-20): 401}
    for left, status in expected.items():
        key = await org.project_key(site.ahead.project, expires_at=now + left)
        for deployment in site.both:
            async with deployment.gateway.client(key.value) as client:
                answer = await client.post(CHAT, json=chat(max_tokens=20))
            assert answer.status_code == status, (left, deployment, answer.text)


@pytest.mark.nightly
@pytest.mark.guarantee("T8")
async def test_a_creation_is_replayed_at_both_for_a_day_of_the_database(
    site: Site, database: Database, clock: MovedClock
) -> None:
    path = keys_path(site.ahead.project.id)
    before = await clock.now()
    created: list[dict[str, Any]] = []
    for number in range(4):
        async with site.both[number % 2].administrator() as client:
            created.append((await create(client, path, f"creation-{number}")).json())
    after = await clock.now()
    await assert_audited(site, before, after, [key["id"] for key in created])
    for key in created:
        assert int(before.timestamp()) <= key["created_at"] <= after.timestamp()
        assert before - NEAR <= (minted_at(UUID(key["id"])) or before - DAY) <= after + NEAR

    for at, is_shown in (
        (before + DAY - timedelta(minutes=30), True),
        (after + DAY + timedelta(minutes=1), False),
    ):
        await clock.set(at)
        await workers_follow(database, clock)
        for deployment in site.both:
            assert await replays(deployment, path, created) == [is_shown] * len(created)


async def assert_audited(site: Site, before: datetime, after: datetime, ids: list[str]) -> None:
    """Compare the newest entries of the audit log with what was created."""
    listed = (await get(site.behind, AUDIT, limit=len(ids)))["data"]
    assert {entry["resource"]["id"] for entry in listed} == set(ids)
    assert_in_order_of_each(ids)
    for entry in listed:
        assert int(before.timestamp()) <= entry["occurred_at"] <= after.timestamp()


async def replays(deployment: Deployment, path: str, created: list[dict[str, Any]]) -> list[bool]:
    """Repeat the creations; whether the value is in each answer."""
    shown: list[bool] = []
    async with deployment.administrator() as client:
        for number, key in enumerate(created):
            answer = await create(client, path, f"creation-{number}")
            assert answer.headers[REPLAYED] == "true"
            assert answer.json()["id"] == key["id"]
            shown.append("value" in answer.json())
    return shown
