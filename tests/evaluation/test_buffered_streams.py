"""Random answers in random pieces: nothing leaves before the verdict, and all of it is judged.

What a backend says is drawn by chance, and so is where the network cuts it.
"""

import asyncio
import os
from collections import Counter
from typing import Any

import pytest
import pytest_asyncio

from tests.evaluation.drawn_answers import CHANNELS, SAID, WORD, drawn
from tests.identity.waiting import until
from tests.support import seeds
from tests.support.judged_deployment import (
    BODIES,
    CHAT,
    MESSAGES,
    RESPONSES,
    JudgedDeployment,
    OpenJudged,
    decisions_dropped,
    sending_at_once,
)
from tollhouse.base.policies import Direction, Mode
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

STREAMS = int(os.environ.get("TOLLHOUSE_STREAMS", "25"))
EXTRAS = {
    CHAT: {"logprobs": True, "top_logprobs": 2},
    RESPONSES: {"include": ["message.output_text.logprobs"], "top_logprobs": 2},
    MESSAGES: {"thinking": {"type": "adaptive"}},
}
"""Log probabilities repeat the answer."""


@pytest_asyncio.fixture(loop_scope="module")
async def impatient(open_judged: OpenJudged, offered: Settings) -> JudgedDeployment:
    """Status lines leave at once, so that whatever leaked would be seen."""
    return await open_judged(sending_at_once(offered, 0.01))


async def received_while_judged(
    impatient: JudgedDeployment, path: str, body: dict[str, Any]
) -> tuple[str, str]:
    """What had come when the judge was asked and had not answered, and what came in the end."""
    impatient.judge.received.clear()
    impatient.judge.holds_answers = True
    received = b""
    before = ""
    async with (
        impatient.deployment.customer() as client,
        client.stream("POST", path, json=body) as answer,
    ):
        if answer.status_code == 200:
            async for piece in answer.aiter_bytes():
                received += piece
                # Comments go on; two after the question means that nothing else would come.
                if impatient.judge.at_once and not before and piece.count(b": keep-alive"):
                    before = received.decode()
                    impatient.judge.let_all()
        else:
            received = await answer.aread()
    return before, received.decode()


async def go_on_after_first_question(impatient: JudgedDeployment) -> None:
    """Send the second half of an answer after the first half was judged."""
    exchange = await impatient.deployment.upstream.seen.arrival()
    await exchange.stall()
    await impatient.judge.has_received(1)

    async def has_answered() -> bool:
        return not impatient.judge.at_once

    await until(has_answered)
    exchange.release()


@pytest.mark.guarantee("T37")
@pytest.mark.parametrize("ends_answer_early", seeds.partly_nightly([False, True], at_landings=1))
async def test_nothing_leaves_before_the_verdict_and_everything_is_judged(
    impatient: JudgedDeployment, *, ends_answer_early: bool
) -> None:
    """What a policy has ended before its end is not judged to its end, and nothing of it leaves."""
    await impatient.forbid(WORD, direction=Direction.RESPONSE, ends_answer_early=ends_answer_early)
    await impatient.forbid("no such word", direction=Direction.RESPONSE, mode=Mode.MONITORING)
    chance = seeds.chance()
    dropped_before = decisions_dropped()
    judged: Counter[str] = Counter()
    total: Counter[str] = Counter()
    channels: set[str] = set()
    expected = 0

    for number in range(STREAMS):
        path = chance.choice([CHAT, CHAT, RESPONSES, MESSAGES])
        # The journal is bounded: of many streams it has only the last.
        impatient.deployment.upstream.seen.clear()
        answer = drawn(chance, number, choices_max=3 if path == CHAT else 1)
        impatient.answers(
            "",
            body=answer.events,
            content_type="text/event-stream",
            split_bytes=chance.choice([None, 50] if answer.is_long else [None, 1, 7, 50]),
            cut={"how": "stall", "after": 0, "inside": True} if answer.is_long else None,
        )
        fields = {"n": answer.choices} if path == CHAT else {}
        body = BODIES[path]("Hi", stream=True, **fields, **EXTRAS[path])

        async with asyncio.TaskGroup() as beside:
            if answer.is_long:
                beside.create_task(go_on_after_first_question(impatient))
            before, after = await received_while_judged(impatient, path, body)

        assert before, "the judge was asked while the caller waited"
        assert SAID not in before
        assert (SAID in after) is not answer.is_forbidden
        assert ("policy_violation" in after or "policy_error" in after) is answer.is_forbidden
        asked = [question for question in impatient.judge.received if WORD in question.rule]
        shown = "\n".join(max(asked, key=lambda question: len(question.content)).texts)
        expected += 2
        channels |= {channel for _, channel in answer.said}
        if ends_answer_early and answer.is_forbidden:
            assert WORD in shown
            continue
        for (_, channel), text in answer.said.items():
            total[channel] += len(text)
            judged[channel] += len(text) if text in shown else 0
    assert judged == total, "characters by channel"
    assert channels == set(CHANNELS)
    await impatient.has_recorded_or_dropped(expected, dropped_before=dropped_before)
