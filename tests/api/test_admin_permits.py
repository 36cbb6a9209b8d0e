"""Admin requests of one organization: few run at once, others wait, other organizations do not."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import msgspec
import pytest

from tests.identity.waiting import holding, until_a_lock_is_awaited
from tests.support.gateway import Gateway, running_gateway
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.api import admin_permits
from tollhouse.api.admin_permits import AdminPermit, AdminPermits, TooManyAdminRequests
from tollhouse.base.ids import OrganizationId, time_ordered_uuid
from tollhouse.settings import Settings

LOCK_AUDIT = "LOCK TABLE audit_log IN ACCESS EXCLUSIVE MODE"
PROJECTS = "/manage/v1/organization/projects"
AUDIT = "/manage/v1/organization/audit"
ONE, OTHER = (OrganizationId(time_ordered_uuid()) for _ in range(2))
TIMEOUT_SECONDS = 120.0


@pytest.fixture
def permits() -> AdminPermits:
    return AdminPermits(at_once_max=2, wait_seconds=TIMEOUT_SECONDS)


async def acquired(permits: AdminPermits, count: int) -> list[AdminPermit]:
    return [await permits.acquire(ONE) for _ in range(count)]


async def test_a_request_waits_until_another_ends(permits: AdminPermits) -> None:
    first, _ = await acquired(permits, 2)
    third = asyncio.create_task(permits.acquire(ONE))
    await asyncio.sleep(0)
    assert not third.done()

    first.release()

    await third


async def test_a_permit_is_released_once_however_often_it_is_asked(permits: AdminPermits) -> None:
    first, _ = await acquired(permits, 2)
    for _ in range(2):
        first.release()
    await permits.acquire(ONE)

    fourth = asyncio.create_task(permits.acquire(ONE))
    await asyncio.sleep(0)

    assert not fourth.done()
    fourth.cancel()


async def test_another_organization_does_not_wait(permits: AdminPermits) -> None:
    await acquired(permits, 2)

    async with asyncio.timeout(TIMEOUT_SECONDS):
        await permits.acquire(OTHER)


async def test_who_waited_in_vain_is_refused_and_takes_no_permit() -> None:
    permits = AdminPermits(at_once_max=1, wait_seconds=0.01)
    (held,) = await acquired(permits, 1)

    with pytest.raises(TooManyAdminRequests) as refused:
        await permits.acquire(ONE)
    held.release()

    assert refused.value.retry_after_seconds == 1
    await permits.acquire(ONE)


async def test_a_caller_who_leaves_while_waiting_takes_no_permit(permits: AdminPermits) -> None:
    first, _ = await acquired(permits, 2)
    leaving = asyncio.create_task(permits.acquire(ONE))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait([leaving])

    first.release()

    async with asyncio.timeout(TIMEOUT_SECONDS):
        await permits.acquire(ONE)


async def test_only_so_many_wait(permits: AdminPermits) -> None:
    await acquired(permits, 2)
    waiting = [asyncio.create_task(permits.acquire(ONE)) for _ in range(admin_permits.WAITING_MAX)]
    await asyncio.sleep(0)

    with pytest.raises(TooManyAdminRequests):
        await permits.acquire(ONE)

    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)


@pytest.fixture
async def narrow(settings: Settings) -> AsyncIterator[Gateway]:
    """Two Admin requests at once, and a moment of waiting for further ones."""
    server = msgspec.structs.replace(
        settings.server, admin_requests_per_organization=2, admin_wait_seconds=0.2
    )
    async with running_gateway(msgspec.structs.replace(settings, server=server)) as gateway:
        yield gateway


def outcome(answer: httpx2.Response) -> tuple[int, str | None, str | None]:
    error = answer.json().get("error")
    code = None if error is None else error["code"]
    return answer.status_code, code, answer.headers.get("retry-after")


async def test_a_flood_of_one_organization_is_refused_and_nobody_elses_requests(
    narrow: Gateway, org: OrganizationFixture, other_org: OrganizationFixture, database_url: str
) -> None:
    """The first two hold their permits as long as the test holds a table."""
    key, other = await org.admin_key(), await other_org.admin_key()
    customer = await org.project_key(await org.project())
    async with (
        narrow.client(key.value) as client,
        narrow.client(other.value) as neighbour,
        narrow.client(customer.value) as customer_client,
    ):
        async with holding(database_url, LOCK_AUDIT):
            running = [asyncio.ensure_future(client.get(AUDIT)) for _ in range(2)]
            await until_a_lock_is_awaited(database_url)
            refused = await asyncio.gather(*(client.get(PROJECTS) for _ in range(20)))
            neighbours = await neighbour.get(PROJECTS)
            customers = await customer_client.get("/v1/models")
        answers = [await each for each in running]

    assert {outcome(answer) for answer in refused} == {(429, "concurrency_limit_exceeded", "1")}
    assert neighbours.status_code == 200
    assert customers.status_code == 200
    assert [answer.status_code for answer in answers] == [200, 200]


async def test_a_refused_request_has_not_been_asked_for_its_body(
    narrow: Gateway, org: OrganizationFixture, database_url: str
) -> None:
    """The body is no JSON, which nobody has noticed."""
    key = await org.admin_key()
    headers = {"content-type": "application/json", "idempotency-key": "creation-1"}
    async with narrow.client(key.value) as client:
        async with holding(database_url, LOCK_AUDIT):
            running = [asyncio.ensure_future(client.get(AUDIT)) for _ in range(2)]
            await until_a_lock_is_awaited(database_url)
            refused = await client.post(PROJECTS, content=b"{", headers=headers)
        await asyncio.gather(*running)

    assert refused.status_code == 429
