"""What a worker believes to apply: never older than the number that a request knows."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest
import pytest_asyncio

from tests.identity.waiting import holding, until, until_a_lock_is_awaited
from tests.policies.client import Policies
from tests.storage.tcp_proxy import proxied
from tests.support.gateway import settings_for
from tests.support.organization_fixture import OrganizationFixture
from tests.support.policies import CONTENT, new_policy, stepped
from tollhouse.app import connect
from tollhouse.base.clock import SystemClock
from tollhouse.base.ids import OrganizationId, PolicyId, time_ordered_uuid
from tollhouse.base.policies import Mode
from tollhouse.base.tasks import Tasks
from tollhouse.keys.directory import KeyDirectory
from tollhouse.policies.errors import (
    SelectedPolicyNotFound,
    SnapshotBehind,
)
from tollhouse.policies.snapshots import PolicySnapshots
from tollhouse.policies.types import Policy, PolicyScope, PolicySnapshot
from tollhouse.projects.types import Project
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable

pytestmark = pytest.mark.asyncio(loop_scope="module")

LOCK_TARGETS = "LOCK TABLE policy_targets IN ACCESS EXCLUSIVE MODE"
"""Reloads wait as long as this is held."""
WAITING = """
    SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@pytest_asyncio.fixture(loop_scope="module")
async def tasks() -> AsyncIterator[Tasks]:
    started = Tasks()
    yield started
    await started.drain(deadline_seconds=30)


@pytest_asyncio.fixture(loop_scope="module")
async def snapshots(database: Database, tasks: Tasks) -> PolicySnapshots:
    return PolicySnapshots(database, tasks)


@pytest_asyncio.fixture(loop_scope="module")
async def project(org: OrganizationFixture) -> Project:
    return await org.project()


async def number_of(org: OrganizationFixture) -> int:
    async with org.database.transaction() as tx:
        return await tx.fetch_value(
            "SELECT policy_version FROM organizations WHERE id = $1", org.organization_id
        )


async def raise_number(org: OrganizationFixture) -> None:
    async with org.database.transaction() as tx:
        await tx.execute(
            "UPDATE organizations SET policy_version = policy_version + 1 WHERE id = $1",
            org.organization_id,
        )


async def found(snapshots: PolicySnapshots, project: Project, number: int) -> PolicySnapshot:
    return await snapshots.find(project.organization_id, project.id, policy_version=number)


async def test_a_snapshot_holds_what_applies_in_order_of_publication(
    snapshots: PolicySnapshots, org: OrganizationFixture, project: Project
) -> None:
    here = replace(
        CONTENT,
        scope=PolicyScope.PROJECTS,
        project_ids=(project.id,),
        match_threshold_basis_points=9,
    )
    first = await new_policy(org, ["publish"], content=replace(CONTENT, mode=Mode.ENFORCING))
    second = await new_policy(org, ["publish"], content=here)
    await new_policy(org, ["publish", "pause"])
    await new_policy(org, ["publish"], content=replace(CONTENT, scope=PolicyScope.UNATTACHED))

    snapshot = await found(snapshots, project, await number_of(org))
    elsewhere = await found(snapshots, await org.project(), await number_of(org))

    assert [policy.id for policy in snapshot.policies] == [first.id, second.id]
    assert [policy.id for policy in elsewhere.policies] == [first.id]
    one, other = snapshot.policies
    assert (one.version, one.rule, one.mode) == (1, CONTENT.rule, Mode.ENFORCING)
    assert (one.match_threshold_basis_points, other.match_threshold_basis_points) == (5000, 9)


async def test_a_project_without_policies_has_an_empty_snapshot(
    snapshots: PolicySnapshots, project: Project
) -> None:
    assert await found(snapshots, project, 0) == PolicySnapshot(policy_version=0, policies=())


async def test_what_is_held_is_not_asked_for_again(
    snapshots: PolicySnapshots, org: OrganizationFixture, project: Project, database_url: str
) -> None:
    await new_policy(org, ["publish"])
    number = await number_of(org)
    snapshot = await found(snapshots, project, number)

    async with holding(database_url, LOCK_TARGETS):
        for known in range(number + 1):
            assert await found(snapshots, project, known) is snapshot


async def test_a_newer_number_waits_for_one_reload_however_many_ask(
    snapshots: PolicySnapshots, org: OrganizationFixture, project: Project, database_url: str
) -> None:
    await found(snapshots, project, 0)
    policy = await new_policy(org, ["publish"])
    number = await number_of(org)

    async with holding(database_url, LOCK_TARGETS):
        asked = [asyncio.create_task(found(snapshots, project, number)) for _ in range(100)]
        await until_a_lock_is_awaited(database_url)
        waiting = await _statements_that_wait(database_url)
    snapshot, *others = await asyncio.gather(*asked)

    assert waiting == 1
    assert [applied.id for applied in snapshot.policies] == [policy.id]
    assert all(other is snapshot for other in others)


async def test_a_number_that_rises_during_a_reload_does_not_wait_for_it(
    snapshots: PolicySnapshots, org: OrganizationFixture, project: Project, database_url: str
) -> None:
    """That reload may have looked too early: joining it could mean to wait a second time."""
    async with holding(database_url, LOCK_TARGETS):
        early = asyncio.create_task(found(snapshots, project, 0))
        await until_a_lock_is_awaited(database_url)
        await raise_number(org)
        late = asyncio.create_task(found(snapshots, project, 1))

        async def both_wait() -> bool:
            return await _statements_that_wait(database_url) == 2

        await until(both_wait)

    assert (await early).policy_version in {0, 1}
    assert (await late).policy_version == 1
    assert (await found(snapshots, project, 0)).policy_version == 1


async def test_a_caller_who_leaves_takes_nothing_from_the_others(
    snapshots: PolicySnapshots, project: Project, database_url: str
) -> None:
    async with holding(database_url, LOCK_TARGETS):
        leaving, staying = [asyncio.create_task(found(snapshots, project, 0)) for _ in range(2)]
        await until_a_lock_is_awaited(database_url)
        leaving.cancel()

    assert (await staying).policy_version == 0
    assert leaving.cancelled()


async def test_a_reload_that_fails_is_a_failure_and_never_the_old_snapshot(
    tasks: Tasks, org: OrganizationFixture, project: Project, database_url: str
) -> None:
    async with proxied(database_url) as (url, wire):
        behind_wire = await connect(settings_for(url))
        snapshots = PolicySnapshots(behind_wire, tasks)
        old = await found(snapshots, project, 0)
        await raise_number(org)
        wire.cut()

        for _ in range(2):
            with pytest.raises(DatabaseUnavailable):
                await found(snapshots, project, 1)
        assert await found(snapshots, project, 0) is old

        wire.mend()
        assert (await found(snapshots, project, 1)).policy_version == 1
        await behind_wire.close()


async def test_a_number_that_the_database_does_not_know_is_a_failure(
    snapshots: PolicySnapshots, project: Project
) -> None:
    with pytest.raises(SnapshotBehind):
        await found(snapshots, project, 1)
    with pytest.raises(SnapshotBehind):
        await snapshots.find(OrganizationId(time_ordered_uuid()), project.id, policy_version=0)


async def test_memory_is_bounded_and_what_was_loaded_last_stays(
    database: Database, tasks: Tasks, org: OrganizationFixture, database_url: str
) -> None:
    content = replace(CONTENT, rule="x" * 9_999 + "?")
    await new_policy(org, ["publish"], content=content)
    projects = [await org.project() for _ in range(3)]
    snapshots = PolicySnapshots(database, tasks, held_characters_max=25_000)
    for project in projects:
        await found(snapshots, project, 1)

    async with holding(database_url, LOCK_TARGETS):
        for project in projects[1:]:
            assert len((await found(snapshots, project, 1)).policies) == 1
        forgotten = asyncio.create_task(found(snapshots, projects[0], 1))
        await until_a_lock_is_awaited(database_url)

    assert len((await forgotten).policies) == 1


async def test_the_number_rises_with_what_applies_and_a_key_carries_it(
    policies: Policies, org: OrganizationFixture, project: Project, tasks: Tasks
) -> None:
    numbers = [await number_of(org)]
    policy = await policies.created(scope="organization")
    numbers.append(await number_of(org))
    await policies.edit(policy["id"], 1, name="another name")
    numbers.append(await number_of(org))
    for verb in (policies.publish, policies.publish, policies.pause, policies.resume):
        await verb(policy["id"], 2 + len(numbers) - 3)
        numbers.append(await number_of(org))
    await policies.roll_back(policy["id"], 6, 1)
    numbers.append(await number_of(org))
    refused = await policies.pause(policy["id"], 6)
    numbers.append(await number_of(org))
    held = await org.project_key(project)
    directory = KeyDirectory(org.database, SystemClock(), tasks, cache_size=10)

    known = await directory.find(held.value)

    assert refused.status_code == 409
    assert numbers == [0, 0, 0, 1, 2, 3, 4, 5, 5]
    assert known is not None
    assert known.policy_version == 5


async def _statements_that_wait(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(WAITING)
    finally:
        await connection.close()


async def test_a_selection_is_read_once_for_each_number(
    snapshots: PolicySnapshots, org: OrganizationFixture, database_url: str
) -> None:
    """A thousand rules of the greatest length are twenty megabytes."""
    content = replace(CONTENT, scope=PolicyScope.UNATTACHED)
    one, other = [await new_policy(org, ["publish"], content=content) for _ in range(2)]

    async def selected(*policies: Policy) -> list[PolicyId]:
        found = await snapshots.selected(
            org.organization_id,
            [policy.id for policy in policies],
            policy_version=await number_of(org),
        )
        return [policy.id for policy in found.policies]

    assert await selected(one, other) == sorted([one.id, other.id])
    async with holding(database_url, "LOCK TABLE policy_versions IN ACCESS EXCLUSIVE MODE"):
        assert await selected(other, one) == sorted([one.id, other.id])
        await raise_number(org)
        again = asyncio.create_task(selected(one, other))
        await until_a_lock_is_awaited(database_url)
    assert await again == sorted([one.id, other.id])


async def test_a_selection_that_can_not_be_applied_is_not_remembered(
    snapshots: PolicySnapshots, org: OrganizationFixture
) -> None:
    draft = await new_policy(org, content=replace(CONTENT, scope=PolicyScope.UNATTACHED))

    async def selected() -> PolicySnapshot:
        number = await number_of(org)
        return await snapshots.selected(org.organization_id, [draft.id], policy_version=number)

    with pytest.raises(SelectedPolicyNotFound):
        await selected()
    published = await stepped(org, draft, "publish")
    paused = await stepped(org, published, "pause")
    skipped = await selected()
    await stepped(org, paused, "resume")
    applied = await selected()

    assert (skipped.policies, [policy.id for policy in skipped.paused]) == ((), [draft.id])
    assert (applied.policies, applied.paused) == (skipped.paused, ())
