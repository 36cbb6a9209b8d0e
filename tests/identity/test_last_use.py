"""`last_used_at`: right to the minute, written behind the requests."""

import asyncio
from datetime import datetime, timedelta

import pytest

from tests.identity.creations import START, managed_keys_path
from tests.support.gateway import running_gateway
from tests.support.organization_fixture import HeldAdminKey, HeldProjectKey, OrganizationFixture
from tollhouse.app import connect
from tollhouse.base.clock import HeldClock
from tollhouse.base.traffic import UNLIMITED_EVERYWHERE
from tollhouse.keys.directory import LastUsed
from tollhouse.keys.types import Customer
from tollhouse.projects.types import Project
from tollhouse.settings import Settings
from tollhouse.storage.errors import DatabaseUnavailable

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIST_ADMIN_KEYS = "/v1/organization/admin_api_keys"
RESOLUTION = timedelta(seconds=60)


async def _last_used(
    org: OrganizationFixture, held: HeldProjectKey | HeldAdminKey
) -> datetime | None:
    async with org.database.transaction() as tx:
        if isinstance(held, HeldAdminKey):
            return await tx.fetch_value(
                "SELECT last_used_at FROM admin_keys WHERE id = $1", held.key.id
            )
        return await tx.fetch_value(
            "SELECT last_used_at FROM project_keys WHERE id = $1", held.key.id
        )


async def _version(org: OrganizationFixture, held: HeldProjectKey) -> int:
    async with org.database.transaction() as tx:
        return await tx.fetch_value(
            "SELECT xmin::text::bigint FROM project_keys WHERE id = $1", held.key.id
        )


def _customer(org: OrganizationFixture, project: Project, held: HeldProjectKey) -> Customer:
    return Customer(
        organization_id=org.organization_id,
        project_id=project.id,
        key_id=held.key.id,
        allowed_models=None,
        granted_checks=frozenset(),
        policy_version=1,
        catalog_version=1,
        limits=UNLIMITED_EVERYWHERE,
    )


async def _use_at(settings: Settings, at: datetime, *keys: str) -> None:
    """A worker's whole life, since its last marks are written when it ends."""
    async with running_gateway(settings, HeldClock(at)) as gateway, gateway.client() as client:
        for key in keys:
            await client.get("/v1/models", headers={"authorization": f"Bearer {key}"})
            await client.get(LIST_ADMIN_KEYS, headers={"authorization": f"Bearer {key}"})


@pytest.mark.guarantee("T22")
async def test_the_last_use_is_kept_to_the_minute(
    settings: Settings, org: OrganizationFixture, project: Project
) -> None:
    project_key, admin_key = await org.project_key(project), await org.admin_key()
    unused = await org.project_key(project)
    written: list[tuple[datetime | None, datetime | None]] = []
    for after in (timedelta(0), RESOLUTION - timedelta(seconds=1), RESOLUTION):
        await _use_at(settings, START + after, project_key.value, admin_key.value)
        written.append((await _last_used(org, project_key), await _last_used(org, admin_key)))

    later = START + RESOLUTION
    assert written == [(START, START), (START, START), (later, later)]
    assert await _last_used(org, unused) is None


@pytest.mark.guarantee("T22")
async def test_a_thousand_uses_per_second_on_two_workers_write_once_a_minute(
    org: OrganizationFixture, project: Project
) -> None:
    """Each version of a row has a transaction of its own."""
    held = await org.project_key(project)
    customer = _customer(org, project, held)
    workers = (LastUsed(), LastUsed())
    versions = {await _version(org, held)}
    for second in range(120):
        for number in range(1_000):
            at = START + timedelta(seconds=second, milliseconds=number)
            workers[number % 2].mark(customer, at)
        for uses in workers:
            await uses.flush(org.database)
            versions.add(await _version(org, held))

    assert len(versions) == 1 + 2


async def test_an_older_mark_of_another_worker_does_not_turn_time_back(
    settings: Settings, org: OrganizationFixture, project: Project
) -> None:
    key = await org.project_key(project)
    await _use_at(settings, START + timedelta(hours=1), key.value)
    await _use_at(settings, START, key.value)

    assert await _last_used(org, key) == START + timedelta(hours=1)


async def test_a_refused_key_is_not_used(
    settings: Settings, org: OrganizationFixture, project: Project
) -> None:
    suspended = await org.project_key(project)
    narrow = await org.project_key(project, ("inference:write",))
    await org.suspend_project_key(suspended)
    await _use_at(settings, START, suspended.value, narrow.value)

    assert await _last_used(org, suspended) is None
    assert await _last_used(org, narrow) is None


async def test_the_last_use_is_shown(
    settings: Settings, org: OrganizationFixture, project: Project
) -> None:
    key = await org.project_key(project)
    await _use_at(settings, START, key.value)
    async with running_gateway(settings, HeldClock(START)) as gateway:
        admin = await org.admin_key()
        async with gateway.client(admin.value) as client:
            shown = await client.get(f"{managed_keys_path(project.id)}/{key.key.id}")

    assert shown.json()["last_used_at"] == int(START.timestamp())


async def test_a_use_survives_a_database_that_is_away(
    settings: Settings, org: OrganizationFixture, project: Project
) -> None:
    held = await org.project_key(project)
    customer = _customer(org, project, held)
    away = await connect(settings)
    await away.close()
    uses = LastUsed()
    uses.mark(customer, START)

    with pytest.raises(DatabaseUnavailable):
        await uses.flush(away)
    await uses.flush(org.database)
    assert await _last_used(org, held) == START


async def test_a_later_use_replaces_one_that_could_not_be_written(
    settings: Settings, org: OrganizationFixture, project: Project
) -> None:
    held = await org.project_key(project)
    customer = _customer(org, project, held)
    away = await connect(settings)
    await away.close()
    uses = LastUsed()
    uses.mark(customer, START)

    failing = asyncio.create_task(uses.flush(away))
    await asyncio.sleep(0)
    uses.mark(customer, START + 2 * RESOLUTION)
    with pytest.raises(DatabaseUnavailable):
        await failing
    await uses.flush(org.database)

    assert await _last_used(org, held) == START + 2 * RESOLUTION
