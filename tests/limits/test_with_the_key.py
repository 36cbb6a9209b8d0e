"""A key is found together with the limits that hold for its requests."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
import pytest_asyncio

from tests.support.gateway import TIMEOUT_SECONDS
from tests.support.limits import set_limit
from tests.support.organization_fixture import HeldProjectKey, OrganizationFixture
from tollhouse.base.clock import HeldClock
from tollhouse.base.permissions import Permission
from tollhouse.base.tasks import Tasks
from tollhouse.base.traffic import UNLIMITED, UNLIMITED_EVERYWHERE, ScopedLimits, TrafficLimits
from tollhouse.keys import rules
from tollhouse.keys.directory import KeyDirectory
from tollhouse.keys.types import Customer, KeyKind, RequiredPermission
from tollhouse.limits import service
from tollhouse.limits.types import LimitOwner, LimitScope

pytestmark = pytest.mark.asyncio(loop_scope="module")

MOMENT = timedelta(seconds=1)


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock(datetime.now(UTC))


@pytest_asyncio.fixture(loop_scope="module")
async def directory(org: OrganizationFixture, clock: HeldClock) -> AsyncIterator[KeyDirectory]:
    tasks = Tasks()
    yield KeyDirectory(org.database, clock, tasks, cache_size=10)
    await tasks.drain(deadline_seconds=TIMEOUT_SECONDS)


@pytest_asyncio.fixture(loop_scope="module")
async def held(org: OrganizationFixture) -> HeldProjectKey:
    return await org.project_key(await org.project())


async def limits_of(directory: KeyDirectory, value: str) -> ScopedLimits:
    known = await directory.find(value)
    assert known is not None
    return known.limits


def places(org: OrganizationFixture, held: HeldProjectKey) -> dict[LimitScope, UUID]:
    return {
        LimitScope.ORGANIZATION: org.organization_id,
        LimitScope.PROJECT: held.key.project_id,
        LimitScope.KEY: held.key.id,
    }


async def test_a_key_without_limits_has_none(directory: KeyDirectory, held: HeldProjectKey) -> None:
    assert await limits_of(directory, held.value) is UNLIMITED_EVERYWHERE


async def test_of_each_scope_and_bound_the_lower_one_holds(
    directory: KeyDirectory,
    org: OrganizationFixture,
    other_org: OrganizationFixture,
    held: HeldProjectKey,
) -> None:
    other_key = await org.project_key(await org.project())
    for offset, (scope, scope_id) in enumerate(places(org, held).items()):
        await set_limit(
            org,
            TrafficLimits(requests_per_minute=10 + offset, tokens_per_minute=200 + offset),
            scope=scope,
            scope_id=scope_id,
            owner=LimitOwner.OPERATOR,
        )
        await set_limit(
            org,
            TrafficLimits(tokens_per_minute=100 + offset, concurrent_requests=5 + offset),
            scope=scope,
            scope_id=scope_id,
        )
    await set_limit(other_org, TrafficLimits(requests_per_minute=1))

    of_organization, of_project, of_key = (
        TrafficLimits(
            requests_per_minute=10 + offset,
            tokens_per_minute=100 + offset,
            concurrent_requests=5 + offset,
        )
        for offset in range(3)
    )
    assert await limits_of(directory, held.value) == (of_organization, of_project, of_key)
    assert await limits_of(directory, other_key.value) == (of_organization, UNLIMITED, UNLIMITED)


async def test_a_change_holds_within_a_second(
    directory: KeyDirectory, clock: HeldClock, org: OrganizationFixture, held: HeldProjectKey
) -> None:
    assert await limits_of(directory, held.value) == UNLIMITED_EVERYWHERE
    limit = await set_limit(org, TrafficLimits(concurrent_requests=3))
    clock.advance(MOMENT)
    changed = await limits_of(directory, held.value)
    async with org.database.mutation(org.authority()) as tx:
        await service.clear_limit(tx, limit.place)
    clock.advance(MOMENT)

    assert changed == (limit.traffic, UNLIMITED, UNLIMITED)
    assert await limits_of(directory, held.value) == UNLIMITED_EVERYWHERE


async def test_the_caller_carries_them(
    directory: KeyDirectory, org: OrganizationFixture, held: HeldProjectKey
) -> None:
    await set_limit(
        org, TrafficLimits(tokens_per_minute=9), scope=LimitScope.KEY, scope_id=held.key.id
    )
    demand = RequiredPermission(
        kind=KeyKind.PROJECT, permission=Permission.INFERENCE_WRITE, survives_archive=False
    )

    caller = rules.authorize(await directory.find(held.value), demand, now=datetime.now(UTC))

    assert isinstance(caller, Customer)
    assert caller.limits == (UNLIMITED, UNLIMITED, TrafficLimits(tokens_per_minute=9))


async def test_an_admin_key_has_none(directory: KeyDirectory, org: OrganizationFixture) -> None:
    admin = await org.admin_key()
    await set_limit(org, TrafficLimits(tokens_per_minute=9))
    known = await directory.find(admin.value)

    assert known is not None
    assert known.limits is UNLIMITED_EVERYWHERE


async def test_of_many_changes_at_once_each_knows_the_one_before(org: OrganizationFixture) -> None:
    await asyncio.gather(
        *(set_limit(org, TrafficLimits(requests_per_minute=limit)) for limit in range(1, 9))
    )
    async with org.database.transaction() as tx:
        rows = await tx.fetch_all(
            """
            SELECT digest_before, digest_after
              FROM audit_log
             WHERE organization_id = $1 AND action = 'rate_limit.set'
            """,
            org.organization_id,
        )

    befores = {row["digest_before"] for row in rows}
    afters = {row["digest_after"] for row in rows}
    assert len(rows) == len(befores) == len(afters) == 8
    assert len(befores - afters) == len(afters - befores) == 1
