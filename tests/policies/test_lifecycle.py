"""From a draft to what applies, and back: what every step shows."""

import pytest

from tests.policies.client import RULE, Policies, body_of
from tests.support.gateway import running_gateway
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.settings import PolicySettings, Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANOTHER_RULE = "Does the text name a place?"


async def test_a_new_policy_is_a_draft_with_the_least_effect(policies: Policies) -> None:
    policy = await policies.created()

    created_at = policy["created_at"]
    assert policy == {
        "object": "organization.policy",
        "id": policy["id"],
        "name": "No names",
        "description": "",
        "state": "draft",
        "revision": 1,
        "has_unpublished_changes": True,
        "created_at": created_at,
        "updated_at": created_at,
        "draft": {
            "rule": RULE,
            "direction": "both",
            "mode": "monitoring",
            "scope": "unattached",
            "project_ids": [],
            "match_threshold_basis_points": None,
            "base_version": 0,
        },
        "current_version": None,
        "published": None,
    }
    assert policy["id"].startswith("pol_")
    assert len(policy["id"]) == 36
    assert body_of(await policies.retrieve(policy["id"])) == policy


async def test_publishing_makes_a_snapshot_of_the_draft(
    policies: Policies, org: OrganizationFixture
) -> None:
    project = await org.project()
    fields = {
        "direction": "request",
        "mode": "enforcing",
        "scope": "projects",
        "project_ids": [str(project.id)],
        "match_threshold_basis_points": 9000,
    }
    draft = await policies.created(**fields)

    policy = body_of(await policies.publish(draft["id"], 1))

    published = policy["published"]
    assert published == {
        "object": "organization.policy.version",
        "id": f"{policy['id']}_v1",
        "version": 1,
        "rule": RULE,
        **fields,
        "published_at": published["published_at"],
        "current": True,
    }
    assert policy["draft"] == {"rule": RULE, **fields, "base_version": 1}
    assert (policy["state"], policy["revision"], policy["current_version"]) == ("enforcing", 2, 1)
    assert policy["has_unpublished_changes"] is False
    assert policy["updated_at"] == published["published_at"] >= policy["created_at"]
    assert body_of(await policies.retrieve(policy["id"])) == policy


async def test_an_edit_changes_the_draft_and_nothing_that_is_published(
    policies: Policies, org: OrganizationFixture
) -> None:
    project = await org.project()
    policy = await policies.published(scope="organization")
    before = body_of(await policies.effective(project.id))

    edited = body_of(
        await policies.edit(
            policy["id"],
            2,
            rule=ANOTHER_RULE,
            direction="response",
            mode="enforcing",
            scope="unattached",
            match_threshold_basis_points=1,
        )
    )

    assert edited["published"] == policy["published"]
    assert (edited["state"], edited["revision"], edited["current_version"]) == ("monitoring", 3, 1)
    assert edited["has_unpublished_changes"] is True
    assert edited["draft"] == {
        "rule": ANOTHER_RULE,
        "direction": "response",
        "mode": "enforcing",
        "scope": "unattached",
        "project_ids": [],
        "match_threshold_basis_points": 1,
        "base_version": 1,
    }
    assert body_of(await policies.effective(project.id)) == before
    assert body_of(await policies.version(policy["id"], 1)) == policy["published"]


async def test_an_edit_back_to_what_is_published_leaves_no_unpublished_changes(
    policies: Policies,
) -> None:
    policy = await policies.published()

    edited = body_of(await policies.edit(policy["id"], 2, rule=ANOTHER_RULE))
    restored = body_of(await policies.edit(policy["id"], 3, rule=RULE))

    assert edited["has_unpublished_changes"] is True
    assert restored["has_unpublished_changes"] is False
    assert restored["revision"] == 4


async def test_name_and_description_are_not_part_of_what_is_published(
    policies: Policies, org: OrganizationFixture
) -> None:
    project = await org.project()
    policy = await policies.published(scope="organization")

    edited = body_of(await policies.edit(policy["id"], 2, name="Nobody", description="why"))

    assert (edited["name"], edited["description"], edited["revision"]) == ("Nobody", "why", 3)
    assert edited["has_unpublished_changes"] is False
    assert body_of(await policies.effective(project.id))["data"][0]["name"] == "Nobody"


@pytest.mark.parametrize("fields", [{}, {"name": "No names", "rule": RULE, "project_ids": []}])
async def test_an_edit_that_says_nothing_new_changes_nothing(
    policies: Policies, fields: dict[str, object]
) -> None:
    policy = await policies.created()

    assert body_of(await policies.edit(policy["id"], 1, **fields)) == policy
    assert body_of(await policies.retrieve(policy["id"])) == policy


async def test_a_null_threshold_restores_the_default(policies: Policies) -> None:
    policy = await policies.published(match_threshold_basis_points=123)
    assert policy["published"]["match_threshold_basis_points"] == 123

    edited = body_of(await policies.edit(policy["id"], 2, match_threshold_basis_points=None))
    published = body_of(await policies.publish(policy["id"], 3))

    assert edited["draft"]["match_threshold_basis_points"] is None
    assert published["draft"]["match_threshold_basis_points"] is None
    assert published["published"]["match_threshold_basis_points"] == 5000
    assert published["has_unpublished_changes"] is False


async def test_the_default_threshold_is_frozen_at_publication(
    settings: Settings, policies: Policies, org: OrganizationFixture
) -> None:
    policy = await policies.published()
    stricter = Settings(
        database=settings.database,
        secrets=settings.secrets,
        server=settings.server,
        policies=PolicySettings(default_threshold_basis_points=7000),
    )
    async with (
        running_gateway(stricter) as later,
        later.client((await org.admin_key()).value) as client,
    ):
        elsewhere = Policies(client)
        read = body_of(await elsewhere.retrieve(policy["id"]))
        published = body_of(await elsewhere.publish(policy["id"], 2))
        rolled_back = body_of(await elsewhere.roll_back(policy["id"], 3, 1))

    assert read == policy
    assert published["published"]["match_threshold_basis_points"] == 7000
    assert rolled_back["published"]["match_threshold_basis_points"] == 5000


async def test_publishing_twice_makes_two_versions(policies: Policies) -> None:
    policy = await policies.published()

    again = body_of(await policies.publish(policy["id"], 2))

    assert (again["current_version"], again["draft"]["base_version"]) == (2, 2)
    assert again["revision"] == 3


async def test_pausing_and_resuming_leads_back_to_the_published_mode(policies: Policies) -> None:
    policy = await policies.published(mode="enforcing")
    await policies.edit(policy["id"], 2, mode="monitoring")

    paused = body_of(await policies.pause(policy["id"], 3))
    resumed = body_of(await policies.resume(policy["id"], 4))

    assert (paused["state"], paused["revision"]) == ("paused", 4)
    assert paused["published"] == policy["published"]
    assert (resumed["state"], resumed["revision"]) == ("enforcing", 5)


async def test_a_paused_policy_can_be_edited_and_published_and_stays_paused(
    policies: Policies,
) -> None:
    policy = await policies.published()
    await policies.pause(policy["id"], 2)

    edited = body_of(await policies.edit(policy["id"], 3, mode="enforcing"))
    published = body_of(await policies.publish(policy["id"], 4))
    resumed = body_of(await policies.resume(policy["id"], 5))

    assert [step["state"] for step in (edited, published, resumed)] == [
        "paused",
        "paused",
        "enforcing",
    ]
    assert published["current_version"] == 2


async def test_rolling_back_publishes_the_older_content_and_keeps_the_draft(
    policies: Policies,
) -> None:
    policy = await policies.published(mode="enforcing")
    await policies.edit(policy["id"], 2, rule=ANOTHER_RULE, mode="monitoring")
    second = body_of(await policies.publish(policy["id"], 3))

    rolled_back = body_of(await policies.roll_back(policy["id"], 4, 1))

    content = {"version", "id", "published_at"}
    assert rolled_back["current_version"] == 3
    assert {k: v for k, v in rolled_back["published"].items() if k not in content} == {
        k: v for k, v in policy["published"].items() if k not in content
    }
    assert rolled_back["state"] == "enforcing"
    assert rolled_back["draft"] == second["draft"]
    assert rolled_back["draft"]["base_version"] == 2
    assert rolled_back["has_unpublished_changes"] is True


async def test_rolling_back_a_paused_policy_keeps_it_paused(policies: Policies) -> None:
    policy = await policies.published(mode="enforcing")
    await policies.publish(policy["id"], 2)
    await policies.pause(policy["id"], 3)

    rolled_back = body_of(await policies.roll_back(policy["id"], 4, 1))

    assert (rolled_back["state"], rolled_back["current_version"]) == ("paused", 3)


async def test_the_history_is_listed_newest_first(policies: Policies) -> None:
    policy = await policies.published()
    for revision in (2, 3):
        await policies.publish(policy["id"], revision)

    whole = body_of(await policies.versions(policy["id"]))
    first = body_of(await policies.versions(policy["id"], limit=2))
    rest = body_of(await policies.versions(policy["id"], limit=2, after=first["last_id"]))

    assert [version["version"] for version in whole["data"]] == [3, 2, 1]
    assert [version["current"] for version in whole["data"]] == [True, False, False]
    assert (whole["first_id"], whole["last_id"]) == (f"{policy['id']}_v3", f"{policy['id']}_v1")
    assert whole["has_more"] is False
    assert first["has_more"] is True
    assert first["data"] + rest["data"] == whole["data"]
    for version in whole["data"]:
        assert body_of(await policies.version(policy["id"], version["version"])) == version


async def test_a_draft_has_no_history(policies: Policies) -> None:
    policy = await policies.created()

    listed = body_of(await policies.versions(policy["id"]))

    assert listed == {
        "object": "list",
        "data": [],
        "has_more": False,
        "first_id": None,
        "last_id": None,
    }
    assert (await policies.version(policy["id"], 1)).status_code == 404


async def test_policies_are_listed_in_order_of_creation(policies: Policies) -> None:
    made = [await policies.created(name=f"number {number}") for number in range(3)]
    made.append(await policies.published())

    first = body_of(await policies.page(limit=3))
    rest = body_of(await policies.page(limit=3, after=first["last_id"]))

    assert first["data"] + rest["data"] == made
    assert (first["has_more"], rest["has_more"]) == (True, False)
    assert (rest["first_id"], rest["last_id"]) == (made[3]["id"], made[3]["id"])


async def test_projects_are_kept_as_sent_each_once(
    policies: Policies, org: OrganizationFixture
) -> None:
    one, other = str((await org.project()).id), str((await org.project()).id)

    policy = await policies.created(project_ids=[other, one, other])
    same = body_of(await policies.edit(policy["id"], 1, project_ids=[other, other, one]))
    turned = body_of(await policies.edit(policy["id"], 1, project_ids=[one, other]))

    assert policy["draft"]["project_ids"] == [other, one]
    assert same["revision"] == 1
    assert turned["draft"]["project_ids"] == [one, other]
