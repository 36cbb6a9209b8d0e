"""Answers while PostgreSQL is away: each has a record when it is back."""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

import httpx2
import msgspec
import pytest

from tests.faults.server import own_server
from tests.identity.measures import counted
from tests.identity.waiting import until
from tests.inference.test_chat import PATH
from tests.storage.cluster import Cluster
from tests.support.deployment import Deployment, chat, offering, open_deployment
from tests.support.gateway import settings_for
from tests.support.organization_fixture import OrganizationFixture
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.ids import ProjectKeyId
from tollhouse.keys.secrets import mint
from tollhouse.keys.types import KeyKind
from tollhouse.settings import ActivitySettings, Settings
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable

ANSWERS = 37
WAITING_MAX = 100
DROPPED = 'tollhouse_activity_dropped_total{reason="no_room"}'


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with own_server() as running:
        yield running


@pytest.fixture
def settings(cluster: Cluster) -> Settings:
    """In the place of the usual ones: everything else follows from them."""
    return msgspec.structs.replace(
        settings_for(cluster.url), activity=ActivitySettings(waiting_records_max=WAITING_MAX)
    )


@pytest.fixture
async def deployment(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> AsyncIterator[Deployment]:
    async with open_deployment(offering(settings, upstream.base_url), upstream, org) as opened:
        yield opened


async def refused(client: httpx2.AsyncClient, count: int) -> set[UUID]:
    """The IDs of `count` answers, all of which say that the database is away."""
    answers = [await client.post(PATH, json=chat()) for _ in range(count)]
    assert {answer.status_code for answer in answers} == {503}
    return {UUID(answer.headers["x-request-id"]) for answer in answers}


async def recorded(database: Database) -> dict[UUID, ProjectKeyId]:
    """The keys of all failed requests that have a record."""
    try:
        rows = await database.fetch_all("SELECT * FROM requests WHERE status = 503")
    except DatabaseUnavailable:
        return {}
    return {row["request_id"]: ProjectKeyId(row["api_key_id"]) for row in rows}


@pytest.mark.nightly
async def test_every_answer_during_an_outage_has_a_record_afterwards(
    deployment: Deployment, cluster: Cluster, settings: Settings
) -> None:
    stranger = await deployment.org.project_key(deployment.project)
    unknown = mint(KeyKind.PROJECT)
    gateway, administrator = deployment.gateway, await deployment.org.admin_key()

    async def refused_admin() -> int:
        """The status of an Admin request, which is never recorded."""
        async with gateway.client(administrator.value) as client:
            return (await client.get("/v1/organization/costs?start_time=0")).status_code

    async with (
        deployment.customer() as client,
        gateway.client(stranger.value) as other,
        gateway.client(unknown.value) as nobody,
    ):
        assert (await client.post(PATH, json=chat())).is_success
        await cluster.kill()
        known, new, never, admin = await asyncio.gather(
            refused(client, ANSWERS), refused(other, ANSWERS), refused(nobody, 1), refused_admin()
        )
        await cluster.start()

        async def is_recorded() -> bool:
            return len(await recorded(deployment.org.database)) >= 2 * ANSWERS

        await until(is_recorded)

    found = await recorded(deployment.org.database)
    assert found.keys() == known | new, "a key that does not exist has no records"
    assert {found[each] for each in new} == {stranger.key.id}
    assert not {found[each] for each in known} & {stranger.key.id}
    assert admin == 503
    assert never


async def test_answers_beyond_the_bound_are_dropped_counted_and_shown_as_a_gap(
    deployment: Deployment, cluster: Cluster
) -> None:
    before = counted(DROPPED)
    async with deployment.customer() as client:
        await cluster.kill()
        answered = await refused(client, WAITING_MAX + 5)
        await cluster.start()

        async def is_recorded() -> bool:
            database = deployment.org.database
            is_written = len(await recorded(database)) >= WAITING_MAX
            return is_written and bool(await database.fetch_all("SELECT FROM record_gaps"))

        await until(is_recorded)

    found = await recorded(deployment.org.database)
    dropped = counted(DROPPED) - before
    assert found.keys() < answered
    assert dropped == len(answered) - len(found) > 0
    (gap,) = await deployment.org.database.fetch_all("SELECT * FROM record_gaps")
    assert gap["records"] == dropped
    administrator = await deployment.org.admin_key()
    async with deployment.gateway.client(administrator.value) as client:
        listed = (await client.get("/manage/v1/organization/requests")).json()
    assert listed["gaps"] == [
        {
            "start_time": int(gap["first_at"].timestamp()),
            "end_time": int(gap["last_at"].timestamp()),
        }
    ]
