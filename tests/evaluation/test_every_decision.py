"""What should have been decided is recorded or counted, however an answer ends; and who pays."""

import asyncio
from typing import Any

import pytest

from tests.support.deployment import chat, open_deployment
from tests.support.gateway import Gateway
from tests.support.judge import Fault, ScriptedJudge
from tests.support.judged_deployment import (
    CHAT,
    JudgedDeployment,
    OpenJudged,
    buffering,
    decisions_dropped,
    judged_deployment_of,
)
from tests.support.organization_fixture import OrganizationFixture
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.policies import Direction, Mode
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG = "word " * 2_000 + "end"
STREAMS = pytest.mark.parametrize("is_stream", [False, True])


async def forbid_two(judged: JudgedDeployment, direction: Direction) -> None:
    await judged.forbid("wine", direction=direction)
    await judged.forbid("beer", direction=direction, mode=Mode.MONITORING)


def body_of(*, is_stream: bool) -> dict[str, Any]:
    return chat("Hi", stream=is_stream, max_tokens=4_000)


@STREAMS
async def test_an_answer_too_long_to_hold(
    open_judged: OpenJudged, offered: Settings, *, is_stream: bool
) -> None:
    opened = await open_judged(buffering(offered, 4_000))
    await forbid_two(opened, Direction.RESPONSE)
    opened.answers(LONG)
    before = decisions_dropped()

    answer = await opened.send(CHAT, body_of(is_stream=is_stream))

    assert "policy_answer_too_long" in answer.text
    assert decisions_dropped() == before + 2


@STREAMS
async def test_an_answer_that_breaks_off_while_it_is_held(
    open_judged: OpenJudged, offered: Settings, *, is_stream: bool
) -> None:
    """The caller received nothing and pays nothing; whole answers cannot break off."""
    opened = await open_judged(offered)
    await forbid_two(opened, Direction.RESPONSE)
    opened.answers(LONG, cut={"how": "close", "after": 1_000 * is_stream, "inside": True})
    before = decisions_dropped()

    answer = await opened.send(CHAT, body_of(is_stream=is_stream))

    assert answer.status_code == 502
    assert (await opened.deployment.settled(1)).settled_pico_usd == 0
    assert decisions_dropped() == before + 2 * is_stream


async def test_a_stop_while_an_answer_is_held(open_judged: OpenJudged, offered: Settings) -> None:
    opened = await open_judged(offered)
    await forbid_two(opened, Direction.RESPONSE)
    opened.answers(LONG, cut={"how": "stall", "after": 100})
    before = decisions_dropped()
    asked = asyncio.create_task(opened.send(CHAT, body_of(is_stream=True)))
    exchange = await opened.deployment.upstream.seen.arrival(nth=opened.asked_of_backend + 1)
    await exchange.stall()
    gateway = opened.deployment.gateway
    assert isinstance(gateway, Gateway)

    gateway.application.end_streams()

    assert (await asked).status_code == 503
    assert (await opened.deployment.settled(1)).settled_pico_usd == 0
    assert decisions_dropped() == before + 2


async def test_a_request_without_a_judge(
    offered: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> None:
    async with open_deployment(offered, upstream, org) as deployment:
        judged = judged_deployment_of(deployment, ScriptedJudge())
        await forbid_two(judged, Direction.REQUEST)
        before = decisions_dropped()

        answer = await judged.send(CHAT, chat("Hi"))

        assert answer.status_code == 503
        assert decisions_dropped() == before + 2


async def test_reading_ahead_that_hangs_takes_no_place_of_a_verdict(
    open_judged: OpenJudged, offered: Settings
) -> None:
    opened = await open_judged(offered, organization_questions_max=2, request_questions_max=1)
    await opened.forbid("wine", direction=Direction.RESPONSE)
    opened.judge.fails = lambda question: None if question.content.endswith("end") else Fault.STALLS

    for number in range(4):
        opened.answers(f"{number} {LONG}")
        answer = await opened.send(CHAT, body_of(is_stream=True))
        assert answer.status_code == 200


async def test_the_score_of_a_long_text_does_not_depend_on_the_threshold(
    open_judged: OpenJudged, offered: Settings
) -> None:
    opened = await open_judged(offered, context_length=2_048, question_tokens_max=512)
    opened.judge.answers = lambda question: (
        0.95 if "second" in question.content else 0.6 if "first" in question.content else 0.05
    )
    ids = [
        await opened.forbid(
            "x", direction=Direction.REQUEST, mode=Mode.MONITORING, threshold_basis_points=at
        )
        for at in (5_000, 8_000)
    ]

    before = decisions_dropped()
    await opened.send(CHAT, chat("first " + "word " * 3_000 + " second"))
    await opened.has_recorded_or_dropped(2, dropped_before=before)

    async with opened.deployment.administrator() as client:
        path = "/manage/v1/organization/policies/{}/decisions"
        found = [(await client.get(path.format(each))).json()["data"] for each in ids]
    assert [(one["outcome"], one["score_basis_points"]) for (one,) in found] == [
        ("match", 9_500),
        ("match", 9_500),
    ]


@pytest.mark.nightly
async def test_a_stop_during_the_verdict_on_a_whole_answer(
    open_judged: OpenJudged, offered: Settings
) -> None:
    opened = await open_judged(offered)
    await opened.forbid("wine", direction=Direction.RESPONSE)
    opened.answers("some words that are said here")
    opened.judge.holds_answers = True
    before = decisions_dropped()
    known = asyncio.all_tasks()
    asked = asyncio.create_task(opened.send(CHAT, body_of(is_stream=False)))
    await opened.judge.has_received(1)

    # As the server does with a request that outlasts its stop.
    for task in asyncio.all_tasks() - known:
        if "run_asgi" in repr(task.get_coro()):
            task.cancel()

    answer = await asked
    assert "words" not in answer.text
    assert (await opened.deployment.settled(1)).settled_pico_usd == 0
    assert decisions_dropped() == before + 1
    opened.judge.let_all()
