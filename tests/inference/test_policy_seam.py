"""Until policies are judged: whatever one would have to decide is refused, and costs nothing."""

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from tests.support.policies import CONTENT, new_policy
from tests.support.shop import MODEL, Shop, chat
from tests.support.world import World
from tollhouse.base.ids import policy_id_text
from tollhouse.policies.types import Mode, Scope

SURFACES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", chat()),
    "responses": ("/v1/responses", {"model": MODEL, "input": "Hi"}),
}
FORMS = pytest.mark.parametrize("is_stream", [False, True])
EACH_SURFACE = pytest.mark.parametrize("surface", SURFACES)


async def ask(
    shop: Shop, surface: str, *, key: str | None = None, **fields: object
) -> httpx2.Response:
    path, body = SURFACES[surface]
    async with shop.gateway.client(key or shop.key.value) as client:
        return await client.post(path, json=body | fields)


def told(answer: httpx2.Response) -> tuple[int, str, str]:
    error = answer.json()["error"]
    return answer.status_code, error["type"], error["code"]


async def assert_undecided(shop: Shop, answer: httpx2.Response) -> None:
    assert told(answer) == (503, "policy_error", "policy_evaluator_unavailable")
    assert answer.headers["x-should-retry"] == "false"
    assert len(shop.upstream.seen) == 0
    assert (await shop.settled(await shop.admitted())).settled_pico_usd == 0


@FORMS
@EACH_SURFACE
async def test_a_policy_that_the_request_names_is_never_passed_over(
    shop: Shop, surface: str, *, is_stream: bool
) -> None:
    content = replace(CONTENT, scope=Scope.UNATTACHED)
    policy = await new_policy(shop.world, ("publish",), content=content)

    answer = await ask(shop, surface, stream=is_stream, policy_ids=[policy_id_text(policy.id)] * 2)

    await assert_undecided(shop, answer)


@FORMS
@EACH_SURFACE
async def test_an_enforcing_policy_is_never_passed_over(
    shop: Shop, surface: str, *, is_stream: bool
) -> None:
    await new_policy(shop.world, ("publish",), content=replace(CONTENT, mode=Mode.ENFORCING))

    await assert_undecided(shop, await ask(shop, surface, stream=is_stream))


@EACH_SURFACE
async def test_a_monitoring_policy_keeps_nobody_waiting(shop: Shop, surface: str) -> None:
    await new_policy(shop.world, ("publish",))

    assert (await ask(shop, surface)).is_success


@EACH_SURFACE
async def test_credit_is_asked_before_a_policy_and_a_policy_before_the_backend(
    shop: Shop, other_world: World, surface: str
) -> None:
    """Two faults each: the earlier check is told."""
    for world in (shop.world, other_world):
        await new_policy(world, ("publish",), content=replace(CONTENT, mode=Mode.ENFORCING))
    poor = await other_world.project_key(await other_world.project())

    uncovered = await ask(shop, surface, key=poor.value)
    assert told(uncovered) == (402, "insufficient_quota", "credit_balance_exhausted")

    refused = '{"script":{"status":400}}'
    content: dict[str, Any] = {"messages": [{"role": "user", "content": refused}]}
    answer = await ask(shop, surface, **(content if surface == "chat" else {"input": refused}))
    await assert_undecided(shop, answer)
