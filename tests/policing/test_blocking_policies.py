"""Who is told which policy refused a request: customers its ID, Admin keys its name as well."""

from typing import Any

import pytest

from tests.identity.waiting import until
from tests.support.courthouse import BODIES, CHAT, RESPONSES, Courthouse
from tests.support.judge import Fault
from tests.support.policies import CONTENT, new_policy
from tests.support.world import World
from tollhouse.policies.types import Direction

pytestmark = pytest.mark.asyncio(loop_scope="module")

REQUESTS = "/manage/v1/organization/requests"
NAME = "No bread, please"


async def named_policy(courthouse: Courthouse, word: str, direction: Direction) -> str:
    policy_id = await courthouse.forbid(word, direction=direction)
    async with courthouse.shop.administrator() as client:
        path = f"/v1/organization/policies/{policy_id}"
        revision = (await client.get(path)).json()["revision"]
        answer = await client.patch(path, json={"revision": revision, "name": NAME})
        assert answer.status_code == 200, answer.text
    return policy_id


async def blocked_record(courthouse: Courthouse, request_id: str) -> dict[str, Any]:
    """The record of a request, once the policies that blocked it are known too."""
    found: dict[str, Any] = {}

    async def is_known() -> bool:
        async with courthouse.shop.administrator() as client:
            answer = await client.get(f"{REQUESTS}/{request_id}")
        found.update(answer.json())
        return bool(found.get("blocked_by"))

    await until(is_known)
    return found


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@pytest.mark.parametrize("direction", [Direction.REQUEST, Direction.RESPONSE])
async def test_a_refusal_is_told_to_customers_by_id_and_to_admin_keys_by_name(
    courthouse: Courthouse, path: str, direction: Direction
) -> None:
    policy_id = await named_policy(courthouse, "bread", direction)
    courthouse.answers("Here is bread.")

    answer = await courthouse.send(path, BODIES[path]("Where is bread?"))
    record = await blocked_record(courthouse, answer.headers["x-request-id"])
    async with courthouse.shop.administrator() as client:
        listed = (await client.get(REQUESTS)).json()["data"]

    assert answer.status_code == 403
    assert policy_id in answer.json()["error"]["message"]
    assert NAME not in answer.text
    assert record["blocked_by"] == [
        {
            "id": policy_id,
            "name": NAME,
            "version": 1,
            "direction": direction.value,
            "outcome": "match",
        }
    ]
    assert [each["blocked_by"] for each in listed] == [record["blocked_by"]]


async def test_a_policy_that_could_not_be_evaluated_is_named_too(courthouse: Courthouse) -> None:
    policy_id = await named_policy(courthouse, "bread", Direction.REQUEST)
    courthouse.judge.fails = lambda _: Fault.ERROR_500

    answer = await courthouse.send(CHAT, BODIES[CHAT]("Where is wine?"))
    record = await blocked_record(courthouse, answer.headers["x-request-id"])

    assert answer.status_code == 503
    assert [(each["id"], each["outcome"]) for each in record["blocked_by"]] == [
        (policy_id, "failed")
    ]


async def test_what_was_served_was_blocked_by_nothing(courthouse: Courthouse) -> None:
    await named_policy(courthouse, "bread", Direction.REQUEST)
    await new_policy(courthouse.shop.world, ("publish",), content=CONTENT)

    answer = await courthouse.send(CHAT, BODIES[CHAT]("Where is wine?"))
    record = await courthouse.shop.record(answer.headers["x-request-id"])

    assert (answer.status_code, record["blocked_by"]) == (200, [])


async def test_another_organization_is_told_nothing(
    courthouse: Courthouse, other_world: World
) -> None:
    await named_policy(courthouse, "bread", Direction.REQUEST)
    answer = await courthouse.send(CHAT, BODIES[CHAT]("Where is bread?"))
    await blocked_record(courthouse, answer.headers["x-request-id"])
    stranger = await other_world.admin_key()

    async with courthouse.shop.gateway.client(stranger.value) as client:
        one = await client.get(f"{REQUESTS}/{answer.headers['x-request-id']}")
        listed = await client.get(REQUESTS)

    assert one.status_code == 404
    assert listed.json()["data"] == []
