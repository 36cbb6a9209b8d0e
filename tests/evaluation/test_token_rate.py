"""Judge tokens of one organization: refused before the judge is asked, and never let through."""

import asyncio
from dataclasses import dataclass

import httpx2
import msgspec
import pytest
import pytest_asyncio

from tests.identity.waiting import until
from tests.support.deployment import customer_of
from tests.support.judge import ScriptedJudge
from tests.support.judged_deployment import (
    BODIES,
    CHAT,
    JudgedDeployment,
    OpenJudged,
    decisions_dropped,
    open_judged_deployment,
)
from tests.support.organization_fixture import OrganizationFixture
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.policies import Direction, Mode
from tollhouse.settings import QuotaSettings, Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENS_PER_MINUTE = 2_000
"""Enough for about fifteen short questions."""
REQUESTS = 60
LIMITED = (429, "policy_rate_limit_exceeded")


@pytest_asyncio.fixture(loop_scope="module")
async def thrifty(open_judged: OpenJudged, offered: Settings) -> JudgedDeployment:
    """A judge of whom organizations may ask little."""
    return await open_judged(
        offered,
        context_length=2_048,
        question_tokens_max=256,
        request_tokens_max=TOKENS_PER_MINUTE,
        organization_tokens_per_minute=TOKENS_PER_MINUTE,
    )


def outcome(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, "" if answer.is_success else answer.json()["error"]["code"]


@dataclass(frozen=True)
class Refusal:
    """The first refused request of a row of requests."""

    answer: httpx2.Response
    passed_before: int
    judge_calls: int
    backend_calls: int


async def send_until_refused(judged: JudgedDeployment, path: str) -> Refusal:
    """Send and get another text each time."""
    for passed in range(REQUESTS):
        judged.answers(f"It is number {passed}.")
        received, served = len(judged.judge.received), judged.asked_of_backend
        answer = await judged.send(path, BODIES[path](f"Where is number {passed}?"))
        if answer.status_code != 200:
            return Refusal(
                answer=answer,
                passed_before=passed,
                judge_calls=len(judged.judge.received) - received,
                backend_calls=judged.asked_of_backend - served,
            )
    raise AssertionError


@pytest.mark.parametrize("path", [*BODIES])
@pytest.mark.parametrize("direction", Direction)
async def test_an_organization_that_asks_too_much_is_refused_before_anybody_is_asked(
    thrifty: JudgedDeployment, path: str, direction: Direction
) -> None:
    await thrifty.forbid("bread", direction=direction)

    refusal = await send_until_refused(thrifty, path)

    assert outcome(refusal.answer) == LIMITED
    assert refusal.passed_before > 0
    assert 1 <= int(refusal.answer.headers["retry-after"]) <= 60
    assert "judge.organization_tokens_per_minute" in refusal.answer.json()["error"]["message"]
    assert refusal.judge_calls == refusal.backend_calls == 0
    await thrifty.deployment.settled(refusal.passed_before)


async def test_of_many_at_once_the_refused_hold_no_money(thrifty: JudgedDeployment) -> None:
    """Some are refused only after their credit was held."""
    await thrifty.forbid("bread", direction=Direction.REQUEST)
    served = thrifty.asked_of_backend

    answers = await asyncio.gather(
        *(thrifty.send(CHAT, BODIES[CHAT](f"Where is number {n}?")) for n in range(REQUESTS))
    )

    outcomes = [outcome(answer) for answer in answers]
    assert set(outcomes) == {(200, ""), LIMITED}
    assert thrifty.asked_of_backend - served == outcomes.count((200, ""))
    await thrifty.deployment.settled(await thrifty.deployment.admitted())


async def test_what_the_judge_is_not_asked_again_costs_no_tokens(thrifty: JudgedDeployment) -> None:
    await thrifty.forbid("bread", direction=Direction.REQUEST)

    answers = [await thrifty.send(CHAT, BODIES[CHAT]("Where is wine?")) for _ in range(REQUESTS)]

    assert {answer.status_code for answer in answers} == {200}
    assert len(thrifty.judge.received) == 1


async def test_monitoring_is_dropped_and_counted_and_delays_nobody(
    thrifty: JudgedDeployment,
) -> None:
    await thrifty.forbid("bread", mode=Mode.MONITORING, direction=Direction.REQUEST)
    dropped = decisions_dropped()

    answers = [
        await thrifty.send(CHAT, BODIES[CHAT](f"Where is number {number}?"))
        for number in range(REQUESTS)
    ]

    assert {answer.status_code for answer in answers} == {200}
    await thrifty.has_recorded_or_dropped(REQUESTS, dropped_before=dropped)
    assert decisions_dropped() > dropped
    assert 0 < len(thrifty.judge.received) < REQUESTS


async def test_monitoring_takes_nothing_from_enforcing(thrifty: JudgedDeployment) -> None:
    await thrifty.forbid("bread", mode=Mode.MONITORING, direction=Direction.REQUEST)
    for number in range(REQUESTS):
        await thrifty.send(CHAT, BODIES[CHAT](f"Where is number {number}?"))
    await thrifty.forbid("wine", direction=Direction.REQUEST)

    async def is_refused() -> bool:
        answer = await thrifty.send(CHAT, BODIES[CHAT]("Where is wine?"))
        assert answer.status_code in {200, 403}, "the policy is known within a second"
        return answer.status_code == 403

    await until(is_refused)


async def test_another_organization_has_tokens_of_its_own(
    thrifty: JudgedDeployment, other_org: OrganizationFixture
) -> None:
    await thrifty.forbid("bread", direction=Direction.REQUEST)
    await send_until_refused(thrifty, CHAT)
    deployment = await customer_of(
        thrifty.deployment.gateway, thrifty.deployment.upstream, other_org
    )
    neighbour = JudgedDeployment(deployment=deployment, judge=thrifty.judge)
    await neighbour.forbid("bread", direction=Direction.REQUEST)

    assert (await neighbour.send(CHAT, BODIES[CHAT]("Where is wine?"))).status_code == 200


async def test_only_so_many_evaluations_of_an_organization_are_pending(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> None:
    quotas = QuotaSettings(pending_evaluations=1)
    upstream.scripts.clear()
    async with open_judged_deployment(
        msgspec.structs.replace(settings, quotas=quotas),
        upstream,
        org,
        ScriptedJudge(holds_answers=True),
    ) as judged:
        await judged.forbid("bread", direction=Direction.REQUEST)
        waiting = asyncio.create_task(judged.send(CHAT, BODIES[CHAT]("Where is wine?")))
        await judged.judge.has_received(1)

        refused = await judged.send(CHAT, BODIES[CHAT]("Where is water?"))
        judged.judge.let_all()

        assert outcome(refused) == LIMITED
        assert "quotas.pending_evaluations" in refused.json()["error"]["message"]
        assert (await waiting).status_code == 200
        await judged.deployment.settled(2)
        assert (await judged.send(CHAT, BODIES[CHAT]("And now?"))).status_code == 200
