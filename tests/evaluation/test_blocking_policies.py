"""Customers see the ID of the policy that refused a request; Admin keys also see its name."""

from typing import Any

import pytest

from tests.identity.waiting import until
from tests.support.judge import Fault
from tests.support.judged_deployment import BODIES, CHAT, JudgedDeployment
from tests.support.organization_fixture import OrganizationFixture
from tests.support.policies import CONTENT, new_policy
from tollhouse.base.policies import Direction

pytestmark = pytest.mark.asyncio(loop_scope="module")

REQUESTS = "/manage/v1/organization/requests"
NAME = "No bread, please"


async def named_policy(judged: JudgedDeployment, word: str, direction: Direction) -> str:
    policy_id = await judged.forbid(word, direction=direction)
    async with judged.deployment.administrator() as client:
        path = f"/v1/organization/policies/{policy_id}"
        revision = (await client.get(path)).json()["revision"]
        answer = await client.patch(path, json={"revision": revision, "name": NAME})
        assert answer.status_code == 200, answer.text
    return policy_id


async def blocked_record(judged: JudgedDeployment, request_id: str) -> dict[str, Any]:
    """The record of a request, once the policies that blocked it are known too."""
    found: dict[str, Any] = {}

    async def is_known() -> bool:
        async with judged.deployment.administrator() as client:
            answer = await client.get(f"{REQUESTS}/{request_id}")
        found.update(answer.json())
        return bool(found.get("blocked_by"))

    await until(is_known)
    return found


@pytest.mark.parametrize("path", [*BODIES])
@pytest.mark.parametrize("direction", [Direction.REQUEST, Direction.RESPONSE])
async def test_a_refusal_is_told_to_customers_by_id_and_to_admin_keys_by_name(
    judged: JudgedDeployment, path: str, direction: Direction
) -> None:
    policy_id = await named_policy(judged, "bread", direction)
    judged.answers("Here is bread.")

    answer = await judged.send(path, BODIES[path]("Where is bread?"))
    record = await blocked_record(judged, answer.headers["x-request-id"])
    async with judged.deployment.administrator() as client:
        listed = (await client.get(REQUESTS)).json()["data"]

    assert answer.status_code == 403
    assert policy_id in answer.json()["error"]["message"]
    assert NAME not in answer.text
    (blocking,) = record["blocked_by"]
    score, threshold = (
        blocking.pop("score_basis_points"),
        blocking.pop("match_threshold_basis_points"),
    )
    assert score >= threshold > 0
    assert blocking == {
        "id": policy_id,
        "name": NAME,
        "version": 1,
        "direction": direction.value,
        "outcome": "match",
        "reason": None,
    }
    (evaluation,) = record["evaluations"]
    assert (evaluation["direction"], evaluation["mode"]) == (direction.value, "enforcing")
    assert evaluation["judging_ms"] > 0
    if direction is Direction.REQUEST:
        assert record["timings"]["judging_ms"] >= evaluation["judging_ms"]
    assert evaluation["decisions"] == [
        {
            "id": policy_id,
            "name": NAME,
            "version": 1,
            "outcome": "match",
            "score_basis_points": score,
            "match_threshold_basis_points": threshold,
            "reason": None,
        }
    ]
    assert [[each["id"] for each in one["blocked_by"]] for one in listed] == [[policy_id]]
    assert listed[0]["blocked_by"][0]["score_basis_points"] == score


async def test_a_policy_that_could_not_be_evaluated_is_named_too(judged: JudgedDeployment) -> None:
    policy_id = await named_policy(judged, "bread", Direction.REQUEST)
    judged.judge.fails = lambda _: Fault.ERROR_500

    answer = await judged.send(CHAT, BODIES[CHAT]("Where is wine?"))
    record = await blocked_record(judged, answer.headers["x-request-id"])

    assert answer.status_code == 503
    (blocking,) = record["blocked_by"]
    assert (blocking["id"], blocking["outcome"]) == (policy_id, "failed")
    assert blocking["reason"] is not None
    assert blocking["score_basis_points"] is None


async def test_what_was_served_was_blocked_by_nothing(judged: JudgedDeployment) -> None:
    await named_policy(judged, "bread", Direction.REQUEST)
    await new_policy(judged.deployment.org, ("publish",), content=CONTENT)

    answer = await judged.send(CHAT, BODIES[CHAT]("Where is wine?"))
    record = await judged.deployment.record(answer.headers["x-request-id"])

    assert (answer.status_code, record["blocked_by"]) == (200, [])
    assert record["replica"] == f"{record['backend']}-1", "not its address"


async def test_another_organization_is_told_nothing(
    judged: JudgedDeployment, other_org: OrganizationFixture
) -> None:
    await named_policy(judged, "bread", Direction.REQUEST)
    answer = await judged.send(CHAT, BODIES[CHAT]("Where is bread?"))
    await blocked_record(judged, answer.headers["x-request-id"])
    stranger = await other_org.admin_key()

    async with judged.deployment.gateway.client(stranger.value) as client:
        one = await client.get(f"{REQUESTS}/{answer.headers['x-request-id']}")
        listed = await client.get(REQUESTS)

    assert one.status_code == 404
    assert listed.json()["data"] == []
