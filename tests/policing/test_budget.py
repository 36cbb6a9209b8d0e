"""A judge's budget: refused where it is exceeded, before anything is asked or in force."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from tests.support.courthouse import BODIES, CHAT, Courthouse, open_courthouse
from tests.support.policies import CONTENT, new_policy
from tests.support.world import World
from tollhouse.base.ids import policy_id_text
from tollhouse.policies.types import Direction, Mode, Policy, Scope
from tollhouse.settings import Settings
from tollhouse.testing.upstream import ScriptedUpstream

pytestmark = pytest.mark.asyncio(loop_scope="module")

RULE = 'Does it say "word {}", and is it ' + "very " * 60 + "long?"  # about a hundred tokens
TOKENS_MAX = 4_600
"""Of which a window in one direction takes all but room for a few such questions."""


@pytest_asyncio.fixture(loop_scope="module")
async def small(
    settings: Settings, upstream: ScriptedUpstream, world: World
) -> AsyncIterator[Courthouse]:
    """The judge reads little."""
    async with open_courthouse(
        settings,
        upstream,
        world,
        context_length=5_000,
        question_tokens_max=500,
        request_tokens_max=TOKENS_MAX + 256,
    ) as opened:
        yield opened


async def draft(world: World, number: int, **changes: object) -> Policy:
    content = replace(
        CONTENT,
        rule=RULE.format(number),
        mode=Mode.ENFORCING,
        direction=Direction.REQUEST,
        **changes,
    )
    return await new_policy(world, content=content)


async def publish(courthouse: Courthouse, policy: Policy, verb: str = "publish") -> tuple[int, str]:
    path = f"/manage/v1/organization/policies/{policy_id_text(policy.id)}/{verb}"
    async with courthouse.shop.administrator() as client:
        answer = await client.post(path, json={"revision": policy.revision})
    return answer.status_code, "" if answer.is_success else answer.json()["error"]["code"]


async def publish_until_full(courthouse: Courthouse) -> int:
    for number in range(20):
        status, code = await publish(courthouse, await draft(courthouse.shop.world, number))
        if status != 200:
            assert (status, code) == (409, "policy_budget_exceeded")
            return number
    raise AssertionError


async def test_a_set_beyond_the_budget_is_not_published(small: Courthouse) -> None:
    fits = await publish_until_full(small)

    assert 0 < fits < 10
    # What was refused is not in force: a request is asked about the others alone.
    answer = await small.send(CHAT, BODIES[CHAT]("Hi"))
    assert answer.status_code == 200
    asked = {heard.rule for heard in small.judge.heard}
    assert asked == {RULE.format(number) for number in range(fits)}


async def test_projects_have_sets_of_their_own(small: Courthouse) -> None:
    world, project = small.shop.world, small.shop.project
    other = await world.project("another")
    fits = await publish_until_full(small)
    attached = await draft(world, 30, scope=Scope.PROJECTS, project_ids=(other.id,))
    free = await draft(world, 31, scope=Scope.UNATTACHED)

    assert fits
    assert await publish(small, attached) == (409, "policy_budget_exceeded")
    assert await publish(small, free) == (200, "")
    assert project.id != other.id


async def test_a_rule_that_the_judge_cannot_read_is_not_published(small: Courthouse) -> None:
    content = replace(CONTENT, rule="Is it " + "very " * 2_000 + "long?")
    policy = await new_policy(small.shop.world, content=content)

    assert await publish(small, policy) == (409, "policy_budget_exceeded")


async def test_a_paused_policy_takes_no_room_until_it_is_resumed(small: Courthouse) -> None:
    world = small.shop.world
    await publish_until_full(small)
    paused = await new_policy(
        world,
        ("publish", "pause"),
        content=replace(
            CONTENT, rule=RULE.format(40), mode=Mode.ENFORCING, direction=Direction.REQUEST
        ),
    )

    assert await publish(small, paused, "resume") == (409, "policy_budget_exceeded")


async def test_a_selection_beyond_the_budget_is_the_callers_fault(small: Courthouse) -> None:
    world = small.shop.world
    ids = [
        policy_id_text(
            (
                await new_policy(
                    world,
                    ("publish",),
                    content=replace(
                        CONTENT,
                        rule=f'Does it say "{number}"? ' + "Really " * 60 + "?",
                        scope=Scope.UNATTACHED,
                        direction=Direction.REQUEST,
                    ),
                )
            ).id
        )
        for number in range(60)
    ]
    asked = small.asked_of_backend

    few = await small.send(CHAT, BODIES[CHAT]("Hi", policy_ids=ids[:3]))
    many = await small.send(CHAT, BODIES[CHAT]("Hi", policy_ids=ids))

    assert few.status_code == 200
    assert many.status_code == 400
    error = many.json()["error"]
    assert (error["code"], error["param"]) == ("policy_budget_exceeded", "policy_ids")
    assert small.asked_of_backend == asked + 1


async def test_content_beyond_the_budget_is_not_let_through(small: Courthouse) -> None:
    await small.forbid("bread", direction=Direction.REQUEST)

    answer = await small.send(CHAT, BODIES[CHAT]("many words " * 2_500))

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "policy_not_evaluable")
    assert "too long to be judged" in answer.json()["error"]["message"]
