"""What the directory says of a key is its own, whatever other keys and organizations have."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from tests.support.gateway import TIMEOUT_SECONDS
from tests.support.limits import set_limit
from tests.support.organization_fixture import HeldProjectKey, OrganizationFixture
from tollhouse.base.clock import HeldClock
from tollhouse.base.tasks import Tasks
from tollhouse.base.traffic import UNLIMITED, UNLIMITED_EVERYWHERE, TrafficLimits
from tollhouse.keys import service as keys
from tollhouse.keys.directory import KeyDirectory
from tollhouse.keys.errors import KeyNotFound
from tollhouse.keys.types import KeyKind

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def directory(org: OrganizationFixture) -> AsyncIterator[KeyDirectory]:
    tasks = Tasks()
    clock = HeldClock(datetime.now(UTC))
    yield KeyDirectory(org.database, clock, tasks, cache_size=10)
    await tasks.drain(deadline_seconds=TIMEOUT_SECONDS)


async def furnish(org: OrganizationFixture, *, check: str, limit: int) -> HeldProjectKey:
    """A project key in an organization with a check and a limit of its own."""
    held = await org.project_key(await org.project())
    await org.grant_check(check)
    await set_limit(org, TrafficLimits(requests_per_minute=limit))
    return held


async def test_keys_of_two_organizations_in_one_lookup_share_nothing(
    directory: KeyDirectory, org: OrganizationFixture, other_org: OrganizationFixture
) -> None:
    worlds, checks, limits = (org, other_org), ("age", "address"), (7, 9)
    held = [
        await furnish(one, check=check, limit=limit)
        for one, check, limit in zip(worlds, checks, limits, strict=True)
    ]
    admin = await org.admin_key()

    *projects, of_admin = await asyncio.gather(
        *(directory.find(value) for value in (*(one.value for one in held), admin.value))
    )

    for one, known, own, check, limit in zip(worlds, projects, held, checks, limits, strict=True):
        assert known is not None
        assert known.kind is KeyKind.PROJECT
        assert known.organization_id == one.organization_id
        assert (known.project_id, known.project_key_id) == (own.key.project_id, own.key.id)
        assert known.granted_checks == {check}
        assert known.limits == (TrafficLimits(requests_per_minute=limit), UNLIMITED, UNLIMITED)
    assert of_admin is not None
    assert (of_admin.kind, of_admin.admin_key_id) == (KeyKind.ADMIN, admin.key.id)
    assert (of_admin.granted_checks, of_admin.limits) == (frozenset(), UNLIMITED_EVERYWHERE)


async def test_a_key_is_told_with_its_own_project_among_others(
    directory: KeyDirectory, org: OrganizationFixture
) -> None:
    names = ("first", "second", "third")
    projects = [await org.project(name) for name in names]
    held = [await org.project_key(project) for project in projects]
    await org.archive(projects[0])
    await org.allow_models(projects[2], "a")

    known = [await directory.find(one.value) for one in held]
    async with org.database.transaction() as tx:
        told = [await keys.find_project_key(tx, org.organization_id, one.key.id) for one in held]

    assert [one and one.is_project_archived for one in known] == [True, False, False]
    assert [one and one.allowed_models for one in known] == [None, None, {"a"}]
    assert tuple(one.project_name for one in told) == names


async def test_keys_of_one_organization_are_not_there_for_another(
    org: OrganizationFixture, other_org: OrganizationFixture
) -> None:
    project = await org.project()
    held = await org.project_key(project)
    stranger = other_org.organization_id

    async with org.database.transaction() as tx:
        found = await keys.page_of_project_keys(tx, stranger, project.id, after=None, limit=10)
        with pytest.raises(KeyNotFound):
            await keys.find_project_key(tx, stranger, held.key.id)
        with pytest.raises(KeyNotFound):
            await keys.retrieve_project_key(tx, stranger, project.id, held.key.id)
    assert found == []


@pytest.mark.parametrize(
    ("of_project", "of_key", "expected"),
    [
        ((), None, None),
        (("a", "b"), None, {"a", "b"}),
        ((), ("b", "c"), {"b", "c"}),
        (("a", "b"), ("b", "c"), {"b"}),
        (("a",), ("c",), set[str]()),
    ],
)
async def test_a_key_may_use_the_models_that_project_and_key_allow(
    directory: KeyDirectory,
    org: OrganizationFixture,
    of_project: tuple[str, ...],
    of_key: tuple[str, ...] | None,
    expected: set[str] | None,
) -> None:
    project = await org.allow_models(await org.project(), *of_project)
    held = await org.project_key(project, allowed_models=of_key)

    known = await directory.find(held.value)

    assert known is not None
    assert known.allowed_models == expected
