"""Judge tokens of one organization: refused before the judge is asked, and never let through."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import msgspec
import pytest
import pytest_asyncio

from tests.identity.waiting import until
from tests.support.courthouse import (
    BODIES,
    CHAT,
    RESPONSES,
    Courthouse,
    decisions_dropped,
    open_courthouse,
)
from tests.support.judge import ScriptedJudge
from tests.support.shop import customer_of
from tests.support.world import World
from tollhouse.policies.types import Direction, Mode
from tollhouse.settings import QuotaSettings, Settings
from tollhouse.testing.upstream import ScriptedUpstream

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENS_PER_MINUTE = 2_000
"""Enough for about fifteen short questions."""
REQUESTS = 60
LIMITED = (429, "policy_rate_limit_exceeded")


@pytest_asyncio.fixture(loop_scope="module")
async def thrifty(
    settings: Settings, upstream: ScriptedUpstream, world: World
) -> AsyncIterator[Courthouse]:
    """A judge of whom organizations may ask little."""
    upstream.scripts.clear()
    async with open_courthouse(
        settings,
        upstream,
        world,
        context_length=2_048,
        question_tokens_max=256,
        request_tokens_max=TOKENS_PER_MINUTE,
        organization_tokens_per_minute=TOKENS_PER_MINUTE,
    ) as opened:
        yield opened


def outcome(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, "" if answer.is_success else answer.json()["error"]["code"]


async def send_until_refused(courthouse: Courthouse, path: str) -> tuple[int, httpx2.Response]:
    """Send and get another text each time; returns how many passed, and the refusal."""
    for passed in range(REQUESTS):
        courthouse.answers(f"It is number {passed}.")
        answer = await courthouse.send(path, BODIES[path](f"Where is number {passed}?"))
        if answer.status_code != 200:
            return passed, answer
    raise AssertionError


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@pytest.mark.parametrize("direction", Direction)
async def test_an_organization_that_asks_too_much_is_refused_before_anybody_is_asked(
    thrifty: Courthouse, path: str, direction: Direction
) -> None:
    await thrifty.forbid("bread", direction=direction)

    passed, refusal = await send_until_refused(thrifty, path)
    heard, served = len(thrifty.judge.heard), thrifty.asked_of_backend
    again = await thrifty.send(path, BODIES[path]("Where is another one?"))

    assert outcome(refusal) == outcome(again) == LIMITED
    assert passed > 0
    assert 1 <= int(refusal.headers["retry-after"]) <= 60
    assert "judge.organization_tokens_per_minute" in refusal.json()["error"]["message"]
    assert len(thrifty.judge.heard) == heard
    assert thrifty.asked_of_backend == served
    await thrifty.shop.settled(passed)


async def test_of_many_at_once_the_refused_hold_no_money(thrifty: Courthouse) -> None:
    """Some are refused only after their credit was held."""
    await thrifty.forbid("bread", direction=Direction.REQUEST)
    served = thrifty.asked_of_backend

    answers = await asyncio.gather(
        *(thrifty.send(CHAT, BODIES[CHAT](f"Where is number {n}?")) for n in range(REQUESTS))
    )

    outcomes = [outcome(answer) for answer in answers]
    assert set(outcomes) == {(200, ""), LIMITED}
    assert thrifty.asked_of_backend - served == outcomes.count((200, ""))
    await thrifty.shop.settled(await thrifty.shop.admitted())


async def test_what_the_judge_is_not_asked_again_costs_no_tokens(thrifty: Courthouse) -> None:
    await thrifty.forbid("bread", direction=Direction.REQUEST)

    answers = [await thrifty.send(CHAT, BODIES[CHAT]("Where is wine?")) for _ in range(REQUESTS)]

    assert {answer.status_code for answer in answers} == {200}
    assert len(thrifty.judge.heard) == 1


async def test_monitoring_is_dropped_and_counted_and_delays_nobody(thrifty: Courthouse) -> None:
    await thrifty.forbid("bread", mode=Mode.MONITORING, direction=Direction.REQUEST)
    dropped = decisions_dropped()

    answers = [
        await thrifty.send(CHAT, BODIES[CHAT](f"Where is number {number}?"))
        for number in range(REQUESTS)
    ]

    assert {answer.status_code for answer in answers} == {200}
    await thrifty.has_recorded_or_dropped(REQUESTS, dropped_before=dropped)
    assert decisions_dropped() > dropped
    assert 0 < len(thrifty.judge.heard) < REQUESTS


async def test_monitoring_takes_nothing_from_enforcing(thrifty: Courthouse) -> None:
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
    thrifty: Courthouse, other_world: World
) -> None:
    await thrifty.forbid("bread", direction=Direction.REQUEST)
    await send_until_refused(thrifty, CHAT)
    shop = await customer_of(thrifty.shop.gateway, thrifty.shop.upstream, other_world)
    neighbour = Courthouse(shop=shop, judge=thrifty.judge)
    await neighbour.forbid("bread", direction=Direction.REQUEST)

    assert (await neighbour.send(CHAT, BODIES[CHAT]("Where is wine?"))).status_code == 200


async def test_only_so_many_evaluations_of_an_organization_are_pending(
    settings: Settings, upstream: ScriptedUpstream, world: World
) -> None:
    quotas = QuotaSettings(pending_evaluations=1)
    upstream.scripts.clear()
    async with open_courthouse(
        msgspec.structs.replace(settings, quotas=quotas),
        upstream,
        world,
        ScriptedJudge(holds_answers=True),
    ) as courthouse:
        await courthouse.forbid("bread", direction=Direction.REQUEST)
        waiting = asyncio.create_task(courthouse.send(CHAT, BODIES[CHAT]("Where is wine?")))
        await courthouse.judge.has_heard(1)

        refused = await courthouse.send(CHAT, BODIES[CHAT]("Where is water?"))
        courthouse.judge.let_all()

        assert outcome(refused) == LIMITED
        assert "quotas.pending_evaluations" in refused.json()["error"]["message"]
        assert (await waiting).status_code == 200
        await courthouse.shop.settled(2)
        assert (await courthouse.send(CHAT, BODIES[CHAT]("And now?"))).status_code == 200
