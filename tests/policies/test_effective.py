"""Which policies apply to a project by themselves, in which order, as the interface shows it."""

import asyncio
import time
from dataclasses import replace
from uuid import uuid4

import pytest

from tests.policies.client import Policies, body_of
from tests.support.gateway import Gateway, running_gateway
from tests.support.organization_fixture import OrganizationFixture
from tests.support.policies import CONTENT, new_policy
from tollhouse.base.ids import parse_policy_id
from tollhouse.policies import service
from tollhouse.policies.types import PolicyScope
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

VERSIONS_READ = """
    SELECT seq_tup_read + idx_tup_fetch
      FROM pg_stat_xact_user_tables WHERE relname = 'policy_versions'
"""


async def test_an_effective_policy_shows_the_published_snapshot(
    policies: Policies, org: OrganizationFixture
) -> None:
    project = await org.project()
    policy = await policies.published(scope="organization", direction="request", mode="enforcing")
    await policies.edit(policy["id"], 2, direction="response", mode="monitoring")

    listed = body_of(await policies.effective(project.id))

    assert listed == {
        "object": "list",
        "data": [
            {
                "object": "organization.effective_policy",
                "id": policy["id"],
                "name": "No names",
                "version": 1,
                "direction": "request",
                "mode": "enforcing",
                "scope": "organization",
                "source": "organization",
            }
        ],
    }


async def test_a_new_name_shows_without_a_publication(
    policies: Policies, org: OrganizationFixture
) -> None:
    project = await org.project()
    policy = await policies.published(scope="organization", name="Before")

    await policies.edit(policy["id"], 2, name="After")

    (listed,) = body_of(await policies.effective(project.id))["data"]
    assert (listed["name"], listed["version"]) == ("After", 1)


async def test_membership_follows_scope_and_state(
    policies: Policies, org: OrganizationFixture
) -> None:
    project, other = await org.project(), await org.project()
    everywhere = await policies.published(scope="organization", project_ids=[str(other.id)])
    here = await policies.published(scope="projects", project_ids=[str(project.id)])
    both = await policies.published(
        scope="projects", project_ids=[str(project.id), str(other.id)], mode="enforcing"
    )
    await policies.published(scope="unattached", project_ids=[str(project.id)])
    await policies.published(scope="projects", project_ids=[])
    await policies.created(scope="organization")
    paused = await policies.published(scope="organization")
    await policies.pause(paused["id"], 2)

    assert await policies.effective_ids(project.id) == [everywhere["id"], here["id"], both["id"]]
    assert await policies.effective_ids(other.id) == [everywhere["id"], both["id"]]


async def test_the_order_is_that_of_publication_not_of_creation(
    policies: Policies, org: OrganizationFixture
) -> None:
    project = await org.project()
    first, second = [await policies.created(scope="organization") for _ in range(2)]
    await policies.publish(second["id"], 1)
    await policies.publish(first["id"], 1)
    assert await policies.effective_ids(project.id) == [second["id"], first["id"]]

    await policies.publish(second["id"], 2)
    assert await policies.effective_ids(project.id) == [first["id"], second["id"]]

    await policies.pause(first["id"], 2)
    await policies.resume(first["id"], 3)
    assert await policies.effective_ids(project.id) == [first["id"], second["id"]]


async def test_the_same_instant_of_publication_is_ordered_by_id(
    policies: Policies, org: OrganizationFixture
) -> None:
    project = await org.project()
    made = [await policies.published(scope="organization") for _ in range(5)]
    async with org.database.transaction() as tx:
        # Only a superuser can do this to the append-only table, and only so.
        await tx.execute("SET LOCAL session_replication_role = replica")
        await tx.execute(
            "UPDATE policy_versions SET published_at = now() WHERE organization_id = $1",
            org.organization_id,
        )

    assert await policies.effective_ids(project.id) == sorted(policy["id"] for policy in made)


async def test_another_scope_holds_from_its_publication_on(
    policies: Policies, org: OrganizationFixture
) -> None:
    project, other = await org.project(), await org.project()
    policy = await policies.published(scope="projects", project_ids=[str(project.id)])

    await policies.edit(policy["id"], 2, project_ids=[str(other.id)])
    assert await policies.effective_ids(project.id) == [policy["id"]]
    assert await policies.effective_ids(other.id) == []

    await policies.publish(policy["id"], 3)
    assert await policies.effective_ids(project.id) == []
    assert await policies.effective_ids(other.id) == [policy["id"]]

    await policies.roll_back(policy["id"], 4, 1)
    assert await policies.effective_ids(project.id) == [policy["id"]]
    assert await policies.effective_ids(other.id) == []


async def test_a_policy_published_while_paused_applies_from_its_resumption_on(
    policies: Policies, org: OrganizationFixture
) -> None:
    project = await org.project()
    policy = await policies.published(scope="unattached")
    await policies.pause(policy["id"], 2)
    await policies.edit(policy["id"], 3, scope="organization")
    await policies.publish(policy["id"], 4)
    assert await policies.effective_ids(project.id) == []

    await policies.resume(policy["id"], 5)
    assert await policies.effective_ids(project.id) == [policy["id"]]


async def test_a_policy_can_name_a_thousand_projects(
    policies: Policies, org: OrganizationFixture
) -> None:
    project_ids = [str(uuid4()) for _ in range(1000)]
    async with org.database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO projects (organization_id, id, name, created_at)
            SELECT $1, wanted.id, 'one of many', now() FROM unnest($2::uuid[]) AS wanted (id)
            """,
            org.organization_id,
            project_ids,
        )

    policy = await policies.published(scope="projects", project_ids=project_ids)

    assert policy["published"]["project_ids"] == project_ids
    for project_id in (project_ids[0], project_ids[499], project_ids[-1]):
        assert await policies.effective_ids(project_id) == [policy["id"]]
    assert await policies.effective_ids((await org.project()).id) == []
    await policies.pause(policy["id"], 2)
    assert await policies.effective_ids(project_ids[0]) == []


async def test_an_archived_project_stays_readable_and_can_be_named(
    policies: Policies, org: OrganizationFixture
) -> None:
    project = await org.project()
    before = await policies.published(scope="projects", project_ids=[str(project.id)])
    await org.archive(project)

    after = await policies.published(scope="projects", project_ids=[str(project.id)])

    assert await policies.effective_ids(project.id) == [before["id"], after["id"]]


async def test_an_unknown_project_is_not_found(policies: Policies) -> None:
    answer = await policies.effective(uuid4())

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "project_not_found"


async def test_organizations_do_not_share_policies(
    gateway: Gateway, policies: Policies, org: OrganizationFixture, other_org: OrganizationFixture
) -> None:
    await policies.published(scope="organization")
    async with gateway.client((await other_org.admin_key()).value) as client:
        others = Policies(client)
        theirs = await others.published(scope="organization")

        assert await others.effective_ids((await other_org.project()).id) == [theirs["id"]]
        assert [one["id"] for one in body_of(await others.page())["data"]] == [theirs["id"]]


@pytest.mark.clock
async def test_a_paused_policy_leaves_the_list_within_a_second_on_every_worker(
    settings: Settings, gateway: Gateway, org: OrganizationFixture
) -> None:
    project, admin = await org.project(), await org.admin_key()
    async with (
        running_gateway(settings) as twin,
        gateway.client(admin.value) as one,
        twin.client(admin.value) as other,
    ):
        here, there = Policies(one), Policies(other)
        policy = await here.published(scope="organization")
        for side in (here, there):
            assert await side.effective_ids(project.id) == [policy["id"]]

        body_of(await here.pause(policy["id"], 2))
        began = time.monotonic()
        lists = await asyncio.gather(*(side.effective_ids(project.id) for side in (here, there)))
        waited_seconds = time.monotonic() - began

    assert lists == [[], []]
    assert waited_seconds < 1


async def test_long_histories_are_not_read(policies: Policies, org: OrganizationFixture) -> None:
    """Also by a plan that was made while they were short, and reading all would have been cheap."""
    project = await org.project()
    policy = await policies.published(scope="organization")
    for _ in range(30):
        await new_policy(org, ["publish"], content=replace(CONTENT, scope=PolicyScope.UNATTACHED))
    async with org.database.transaction() as tx:
        await tx.execute("ANALYZE policies, policy_versions, policy_targets")
    async with org.database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO policy_versions
            SELECT v.organization_id, v.policy_id, number, v.rule, v.direction, v.mode, v.scope,
                   v.project_ids, v.match_threshold_basis_points,
                   v.threshold_in_force_basis_points, v.published_at
              FROM policy_versions v, generate_series(2, 5000) number
             WHERE v.organization_id = $1 AND v.policy_id = $2
            """,
            org.organization_id,
            parse_policy_id(policy["id"]),
        )
        await tx.execute(
            """
            UPDATE policies SET current_version = 5000 WHERE organization_id = $1 AND id = $2
            """,
            org.organization_id,
            parse_policy_id(policy["id"]),
        )
    async with org.database.transaction() as tx:
        before = await tx.fetch_value(VERSIONS_READ)
        (listed,) = await service.effective(tx, org.organization_id, project.id)
        read_for_list = await tx.fetch_value(VERSIONS_READ) - before
        shown = await service.retrieve(tx, org.organization_id, listed.id)
        read_in_all = await tx.fetch_value(VERSIONS_READ) - before

    assert listed.version == shown.current_version == 5000
    assert (read_for_list, read_in_all) == (1, 2)
