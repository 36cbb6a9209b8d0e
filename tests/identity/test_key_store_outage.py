"""A key store that is away is our failure: 503 and come back, never a word against the key."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from urllib.parse import urlsplit

import httpx2
import pytest
from msgspec.structs import replace

from tests.identity import measures
from tests.identity.creations import LOCK_PROJECT
from tests.identity.proxy import Proxy, proxied
from tests.identity.waiting import holding, until_a_lock_is_awaited
from tests.support.gateway import Gateway, running_gateway
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.clock import Clock, HeldClock
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIST = "/v1/organization/admin_api_keys"
KEYS = 20
OUTAGE_SECONDS = 2.0
RECOVERY_SECONDS_MAX = 5.0
BELIEVED_SECONDS = 0.8
TIMEOUT_SECONDS = 4.0
"""Where somebody who does not answer is waited for."""


def _impatient(settings: Settings) -> Settings:
    database = replace(
        settings.database, acquire_seconds=TIMEOUT_SECONDS, statement_seconds=TIMEOUT_SECONDS
    )
    return replace(settings, database=database)


@asynccontextmanager
async def _behind_proxy(
    settings: Settings, clock: Clock | None = None
) -> AsyncGenerator[tuple[Gateway, Proxy]]:
    server = urlsplit(settings.database.url)
    assert server.hostname is not None
    async with proxied(server.hostname, server.port or 5432) as proxy:
        url = f"postgresql://{server.username}@127.0.0.1:{proxy.port}{server.path}?{server.query}"
        database = replace(settings.database, url=url)
        chosen = replace(settings, database=database)
        async with running_gateway(chosen, clock) as gateway:
            yield gateway, proxy


async def _statuses(client: httpx2.AsyncClient, *, seconds: float) -> list[httpx2.Response]:
    answers: list[httpx2.Response] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        answers.append(await client.get(LIST))
        await asyncio.sleep(0.05)
    return answers


async def _seconds_until_served(client: httpx2.AsyncClient) -> float:
    began = time.monotonic()
    while (answer := await client.get(LIST)).status_code != 200:
        assert answer.status_code == 503
        assert time.monotonic() - began < 2 * RECOVERY_SECONDS_MAX
        await asyncio.sleep(0.05)
    return time.monotonic() - began


def _assert_only_unavailable(answers: list[httpx2.Response]) -> None:
    assert answers
    for answer in answers:
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "service_unavailable"
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert "www-authenticate" not in answer.headers


@pytest.mark.guarantee("T18")
@pytest.mark.clock
async def test_a_cut_key_store_is_503_and_served_again_within_five_seconds(
    settings: Settings, org: OrganizationFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = await org.admin_key()
    async with _behind_proxy(settings) as (gateway, proxy), gateway.client(admin.value) as client:
        assert (await client.get(LIST)).status_code == 200
        await proxy.cut()
        answers = await _statuses(client, seconds=OUTAGE_SECONDS)
        await proxy.open()
        recovery_seconds = await _seconds_until_served(client)

    _assert_only_unavailable(answers)
    assert recovery_seconds < RECOVERY_SECONDS_MAX
    measures.show(capsys, f"served {recovery_seconds * 1000:.0f} ms after the key store was back")


@pytest.mark.guarantee("T18")
async def test_ten_requests_of_every_key_at_once_are_one_lookup_per_key_after_an_outage(
    settings: Settings, org: OrganizationFixture
) -> None:
    """The clock stands still, so that an answer is believed from then on."""
    values = [(await org.admin_key()).value for _ in range(KEYS)]

    async def ask_at_once(client: httpx2.AsyncClient) -> list[httpx2.Response]:
        headers = [{"authorization": f"Bearer {value}"} for value in 10 * values]
        return await asyncio.gather(*(client.get(LIST, headers=each) for each in headers))

    held = HeldClock(datetime.now(UTC))
    async with _behind_proxy(settings, held) as (gateway, proxy), gateway.client() as client:
        await proxy.cut()
        refused = await ask_at_once(client)
        found = measures.lookups("found")
        await proxy.open()
        async with asyncio.timeout(TIMEOUT_SECONDS):
            answers = await ask_at_once(client)
            while again := [answer for answer in answers if answer.status_code != 200]:
                refused += again
                answers = await ask_at_once(client)

    _assert_only_unavailable(refused)
    assert measures.lookups("found") - found == KEYS


@pytest.mark.guarantee("T18")
@pytest.mark.clock
async def test_a_key_store_that_falls_silent_is_503_within_its_bounds(
    settings: Settings, org: OrganizationFixture
) -> None:
    admin = await org.admin_key()
    async with (
        _behind_proxy(_impatient(settings)) as (gateway, proxy),
        gateway.client(admin.value) as client,
    ):
        assert (await client.get(LIST)).status_code == 200
        await asyncio.sleep(BELIEVED_SECONDS)
        proxy.fall_silent()
        began = time.monotonic()
        answers = await asyncio.gather(*(client.get(LIST) for _ in range(20)))
        answered_seconds = time.monotonic() - began
        proxy.speak()
        recovery_seconds = await _seconds_until_served(client)

    _assert_only_unavailable(answers)
    assert answered_seconds < 4 * TIMEOUT_SECONDS
    assert recovery_seconds < RECOVERY_SECONDS_MAX


@pytest.mark.guarantee("T18")
async def test_an_unknown_key_is_not_refused_while_nobody_can_know(
    settings: Settings, org: OrganizationFixture
) -> None:
    """Nor is a key that was revoked: the answer must not depend on what we cannot read."""
    revoked = await org.admin_key()
    await org.revoke_admin_key(revoked)
    async with _behind_proxy(settings) as (gateway, proxy), gateway.client() as client:
        await proxy.cut()
        answer = await client.get(LIST, headers={"authorization": f"Bearer {revoked.value}"})
        garbage = await client.get(LIST, headers={"authorization": "Bearer garbage"})
        await proxy.open()

    _assert_only_unavailable([answer])
    assert garbage.status_code == 401


@pytest.mark.guarantee("T42")
async def test_a_request_does_not_wait_for_a_connection_without_end(
    settings: Settings, org: OrganizationFixture, database_url: str
) -> None:
    """The only Admin connection is held by a request that waits for a row; inference goes on."""
    admin, project = await org.admin_key(), await org.project()
    other, customer = await org.admin_key(), await org.project_key(project)
    narrow = replace(
        settings.database, pool_size=1, admin_pool_size=1, acquire_seconds=TIMEOUT_SECONDS
    )
    async with (
        running_gateway(replace(settings, database=narrow)) as gateway,
        gateway.client(admin.value) as busy,
        gateway.client(other.value) as client,
        holding(database_url, LOCK_PROJECT, project.id),
    ):
        path = f"/v1/organization/projects/{project.id}/archive"
        archiving = asyncio.ensure_future(busy.post(path))
        await until_a_lock_is_awaited(database_url)
        customers = await client.get(
            "/v1/models", headers={"authorization": f"Bearer {customer.value}"}
        )
        answer = await client.get(LIST)
        is_still_held = not archiving.done()
        archiving.cancel()

    _assert_only_unavailable([answer])
    assert customers.status_code == 200
    assert is_still_held
