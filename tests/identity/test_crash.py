"""A worker that dies in the middle of a creation: the retry ends with exactly one key."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio

from tests.identity.creations import (
    LOCK_PROJECT,
    REPLAYED,
    create,
    keys_of,
    keys_path,
    records_of,
    secrets_of,
)
from tests.identity.proxy import proxied
from tests.identity.waiting import holding, until, until_a_lock_is_awaited
from tests.support.gateway import TIMEOUT_SECONDS
from tests.support.organization_fixture import OrganizationFixture
from tests.support.processes import Service, running_service
from tollhouse.projects.types import Project
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def service(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Service]:
    async with running_service(settings, tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def admin_key(org: OrganizationFixture) -> str:
    return (await org.admin_key()).value


async def _until_restarted(service: Service, workers_before: int) -> None:
    """Until the supervisor has replaced the worker; connections queue until it accepts."""

    async def is_replaced() -> bool:
        return len(service.started_workers()) > workers_before

    await until(is_replaced)


@pytest.mark.guarantee("I10")
@pytest.mark.clock
async def test_a_crash_before_the_commit_leaves_nothing_and_the_retry_creates(
    service: Service, org: OrganizationFixture, project: Project, admin_key: str, database_url: str
) -> None:
    workers_before = len(service.started_workers())
    async with (
        service.client(admin_key) as client,
        holding(database_url, LOCK_PROJECT, project.id),
    ):
        creation = asyncio.ensure_future(create(client, keys_path(project.id), "creation-1"))
        await until_a_lock_is_awaited(database_url)
        service.kill_newest_worker()
        with pytest.raises(httpx2.TransportError):
            await creation
    await _until_restarted(service, workers_before)

    async with service.client(admin_key) as client:
        assert await keys_of(org) == 0
        retried = await create(client, keys_path(project.id), "creation-1")

    assert retried.status_code == 200
    assert REPLAYED not in retried.headers
    assert "value" in retried.json()
    assert (await keys_of(org), await secrets_of(org), await records_of(org)) == (1, 1, 1)


@pytest.mark.guarantee("I10")
async def test_a_crash_after_the_commit_is_made_good_by_the_replay(
    service: Service, org: OrganizationFixture, project: Project, admin_key: str
) -> None:
    """The answer left the worker, and nobody got it."""
    workers_before = len(service.started_workers())
    async with proxied(*service.address) as proxy:
        proxy.swallow_answers()
        url = f"http://127.0.0.1:{proxy.port}"
        headers = {"authorization": f"Bearer {admin_key}"}
        async with httpx2.AsyncClient(
            base_url=url, headers=headers, timeout=TIMEOUT_SECONDS, trust_env=False
        ) as client:
            creation = asyncio.ensure_future(create(client, keys_path(project.id), "creation-1"))
            await asyncio.wait_for(proxy.answer_swallowed.wait(), TIMEOUT_SECONDS)
            service.kill_newest_worker()
            with pytest.raises(httpx2.TransportError):
                await creation
    await _until_restarted(service, workers_before)
    assert await keys_of(org) == 1

    async with service.client(admin_key) as client:
        retried = await create(client, keys_path(project.id), "creation-1")
        used = await client.get(
            "/v1/models", headers={"authorization": f"Bearer {retried.json()['value']}"}
        )

    assert retried.status_code == 200
    assert retried.headers[REPLAYED] == "true"
    assert used.status_code == 200, "the key that was replayed is the key that was made"
    assert (await keys_of(org), await secrets_of(org), await records_of(org)) == (1, 1, 1)
