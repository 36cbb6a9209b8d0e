"""A judge's budget: refused where it is exceeded, before anything is asked or in force."""

from dataclasses import replace

import pytest
import pytest_asyncio

from tests.support.judged_deployment import BODIES, CHAT, JudgedDeployment, OpenJudged
from tests.support.organization_fixture import OrganizationFixture
from tests.support.policies import CONTENT, new_policy
from tollhouse.base.ids import policy_id_text
from tollhouse.base.policies import Direction, Mode
from tollhouse.policies.types import Policy, PolicyScope
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

RULE = 'Does it say "word {}", and is it ' + "very " * 60 + "long?"  # about a hundred tokens
TOKENS_MAX = 4_600
"""A window in one direction takes all of it but the tokens of a few such questions."""


@pytest_asyncio.fixture(loop_scope="module")
async def small(open_judged: OpenJudged, offered: Settings) -> JudgedDeployment:
    """The judge reads little."""
    return await open_judged(
        offered,
        context_length=5_000,
        question_tokens_max=500,
        request_tokens_max=TOKENS_MAX + 256,
    )


async def draft(org: OrganizationFixture, number: int, **changes: object) -> Policy:
    content = replace(
        CONTENT,
        rule=RULE.format(number),
        mode=Mode.ENFORCING,
        direction=Direction.REQUEST,
        **changes,
    )
    return await new_policy(org, content=content)


async def publish(
    judged: JudgedDeployment, policy: Policy, verb: str = "publish"
) -> tuple[int, str]:
    path = f"/manage/v1/organization/policies/{policy_id_text(policy.id)}/{verb}"
    async with judged.deployment.administrator() as client:
        answer = await client.post(path, json={"revision": policy.revision})
    return answer.status_code, "" if answer.is_success else answer.json()["error"]["code"]


async def publish_until_full(judged: JudgedDeployment) -> int:
    for number in range(20):
        status, code = await publish(judged, await draft(judged.deployment.org, number))
        if status != 200:
            assert (status, code) == (409, "policy_budget_exceeded")
            return number
    raise AssertionError


async def test_policies_of_another_organization_take_no_room(
    small: JudgedDeployment, other_org: OrganizationFixture
) -> None:
    for number in range(20):
        await new_policy(
            other_org, ("publish",), content=replace(CONTENT, rule=RULE.format(number))
        )

    assert await publish_until_full(small) > 0


async def test_a_set_beyond_the_budget_is_not_published(small: JudgedDeployment) -> None:
    fits = await publish_until_full(small)

    assert 0 < fits < 10
    small.judge.received.clear()
    # What was refused is not in force: a request is asked about the others alone.
    answer = await small.send(CHAT, BODIES[CHAT]("Hi"))
    assert answer.status_code == 200
    asked = {question.rule for question in small.judge.received}
    assert asked == {RULE.format(number) for number in range(fits)}


async def test_projects_have_sets_of_their_own(small: JudgedDeployment) -> None:
    org, project = small.deployment.org, small.deployment.project
    other = await org.project("another")
    fits = await publish_until_full(small)
    attached = await draft(org, 30, scope=PolicyScope.PROJECTS, project_ids=(other.id,))
    free = await draft(org, 31, scope=PolicyScope.UNATTACHED)

    assert fits
    assert await publish(small, attached) == (409, "policy_budget_exceeded")
    assert await publish(small, free) == (200, "")
    assert project.id != other.id


async def test_a_rule_that_the_judge_cannot_read_is_not_published(small: JudgedDeployment) -> None:
    content = replace(CONTENT, rule="Is it " + "very " * 2_000 + "long?")
    policy = await new_policy(small.deployment.org, content=content)

    assert await publish(small, policy) == (409, "policy_budget_exceeded")


async def test_a_paused_policy_takes_no_room_until_it_is_resumed(small: JudgedDeployment) -> None:
    org = small.deployment.org
    await publish_until_full(small)
    paused = await new_policy(
        org,
        ("publish", "pause"),
        content=replace(
            CONTENT, rule=RULE.format(40), mode=Mode.ENFORCING, direction=Direction.REQUEST
        ),
    )

    assert await publish(small, paused, "resume") == (409, "policy_budget_exceeded")


async def test_a_selection_beyond_the_budget_is_the_callers_fault(small: JudgedDeployment) -> None:
    org = small.deployment.org
    ids = [
        policy_id_text(
            (
                await new_policy(
                    org,
                    ("publish",),
                    content=replace(
                        CONTENT,
                        rule=f'Does it say "{number}"? ' + "Really " * 60 + "?",
                        scope=PolicyScope.UNATTACHED,
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


async def test_content_beyond_the_budget_is_not_let_through(small: JudgedDeployment) -> None:
    await small.forbid("bread", direction=Direction.REQUEST)

    answer = await small.send(CHAT, BODIES[CHAT]("many words " * 2_500))

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "policy_not_evaluable")
    assert "too long to be judged" in answer.json()["error"]["message"]
