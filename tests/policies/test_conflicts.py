"""Who does not know the policy as it is changes nothing, and is told so."""

from typing import Any

import httpx2
import pytest

from tests.policies.client import Policies, assert_conflict, body_of
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.ids import parse_policy_id

pytestmark = pytest.mark.asyncio(loop_scope="module")

VERBS = ("edit", "publish", "pause", "resume", "roll_back")


async def act(policies: Policies, verb: str, policy_id: str, revision: int) -> httpx2.Response:
    match verb:
        case "edit":
            return await policies.edit(policy_id, revision, name="another name")
        case "publish":
            return await policies.publish(policy_id, revision)
        case "pause":
            return await policies.pause(policy_id, revision)
        case "resume":
            return await policies.resume(policy_id, revision)
        case _:
            return await policies.roll_back(policy_id, revision, 1)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("revision", [1, 3, 2_147_483_647])
async def test_any_revision_but_the_latest_is_a_conflict(
    policies: Policies, verb: str, revision: int
) -> None:
    """Whatever the state: the revision is looked at first."""
    policy = await policies.published()

    answer = await act(policies, verb, policy["id"], revision)

    assert_conflict(answer, "revision_conflict", "revision")
    assert body_of(await policies.retrieve(policy["id"])) == policy


async def test_a_stale_edit_that_says_nothing_new_is_a_conflict_too(policies: Policies) -> None:
    policy = await policies.published()

    assert_conflict(await policies.edit(policy["id"], 1), "revision_conflict", "revision")


async def test_a_stale_edit_with_an_unknown_project_is_a_conflict(policies: Policies) -> None:
    policy = await policies.created()
    unknown = ["11111111-1111-4111-8111-111111111111"]

    stale = await policies.edit(policy["id"], 2, project_ids=unknown)
    latest = await policies.edit(policy["id"], 1, project_ids=unknown)

    assert_conflict(stale, "revision_conflict", "revision")
    assert latest.status_code == 404


STATES: dict[str, list[str]] = {
    "draft": [],
    "monitoring": ["publish"],
    "paused": ["publish", "pause"],
}
WRONG = [
    ("draft", "pause"),
    ("draft", "resume"),
    ("monitoring", "resume"),
    ("paused", "pause"),
]


@pytest.mark.parametrize(("state", "verb"), WRONG)
async def test_a_verb_in_the_wrong_state_is_a_conflict(
    policies: Policies, state: str, verb: str
) -> None:
    policy = await policies.created()
    for step in STATES[state]:
        policy = body_of(await act(policies, step, policy["id"], policy["revision"]))
    assert policy["state"] == state

    answer = await act(policies, verb, policy["id"], policy["revision"])

    assert_conflict(answer, "policy_state_conflict", "policy_id")
    assert body_of(await policies.retrieve(policy["id"])) == policy


async def test_rolling_back_to_the_current_version_is_a_conflict(policies: Policies) -> None:
    policy = await policies.published()

    answer = await policies.roll_back(policy["id"], 2, 1)

    assert_conflict(answer, "policy_state_conflict", "version")


@pytest.mark.parametrize("steps", [[], ["publish"]])
async def test_rolling_back_to_an_unknown_version_is_not_found(
    policies: Policies, steps: list[str]
) -> None:
    policy = await policies.created()
    for step in steps:
        policy = body_of(await act(policies, step, policy["id"], policy["revision"]))

    answer = await policies.roll_back(policy["id"], policy["revision"], 2)

    assert answer.status_code == 404
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("policy_version_not_found", "version")


@pytest.mark.parametrize("verb", ["edit", "publish", "pause", "roll_back"])
async def test_no_change_is_left_at_the_last_revision(
    policies: Policies, org: OrganizationFixture, verb: str
) -> None:
    policy = await _at_the_last_revision(policies, org, ["publish", "publish"])

    answer = await act(policies, verb, policy["id"], 2_147_483_647)
    nothing_new = await policies.edit(policy["id"], 2_147_483_647)

    assert_conflict(answer, "revision_conflict", "revision")
    assert body_of(nothing_new) == policy


async def test_a_policy_paused_at_the_last_revision_stays_paused(
    policies: Policies, org: OrganizationFixture
) -> None:
    policy = await _at_the_last_revision(policies, org, ["publish", "pause"])

    answer = await policies.resume(policy["id"], 2_147_483_647)

    assert_conflict(answer, "revision_conflict", "revision")


async def _at_the_last_revision(
    policies: Policies, org: OrganizationFixture, steps: list[str]
) -> dict[str, Any]:
    policy = await policies.created()
    for step in steps:
        policy = body_of(await act(policies, step, policy["id"], policy["revision"]))
    async with org.database.transaction() as tx:
        await tx.execute(
            "UPDATE policies SET revision = 2147483647 WHERE organization_id = $1 AND id = $2",
            org.organization_id,
            parse_policy_id(policy["id"]),
        )
    return body_of(await policies.retrieve(policy["id"]))
