"""Random answers in random pieces: nothing leaves before the verdict, and all of it is judged.

What a backend says is drawn by chance, and so is where the network cuts it.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from tests.identity.waiting import until
from tests.policing.drawn_answers import CHANNELS, SAID, WORD, drawn
from tests.support.courthouse import (
    BODIES,
    CHAT,
    RESPONSES,
    Courthouse,
    decisions_dropped,
    open_courthouse,
)
from tests.support.world import World
from tollhouse.policies.types import Direction, Mode
from tollhouse.settings import InferenceSettings, Settings
from tollhouse.testing.upstream import ScriptedUpstream

pytestmark = pytest.mark.asyncio(loop_scope="module")

STREAMS = int(os.environ.get("TOLLHOUSE_STREAMS", "25"))
SEED = int(os.environ.get("TOLLHOUSE_SEED", "11"))
EXTRAS = {
    CHAT: {"logprobs": True, "top_logprobs": 2},
    RESPONSES: {"include": ["message.output_text.logprobs"], "top_logprobs": 2},
}
"""Whoever asks for probabilities gets the answer once more."""


@pytest_asyncio.fixture(loop_scope="module")
async def hasty(
    settings: Settings, upstream: ScriptedUpstream, world: World
) -> AsyncIterator[Courthouse]:
    """Status lines leave at once, so that whatever leaked would be seen."""
    quick = msgspec.structs.replace(
        settings, inference=InferenceSettings(head_wait_seconds=0.01, keep_alive_seconds=0.02)
    )
    async with open_courthouse(quick, upstream, world) as opened:
        yield opened


async def received_while_judged(
    hasty: Courthouse, path: str, body: dict[str, Any]
) -> tuple[str, str]:
    """What had come when the judge was asked and had not answered, and what came in the end."""
    hasty.judge.heard.clear()
    hasty.judge.holds_answers = True
    received = b""
    before = ""
    async with (
        hasty.shop.customer() as client,
        client.stream("POST", path, json=body) as answer,
    ):
        if answer.status_code == 200:
            async for piece in answer.aiter_bytes():
                received += piece
                # Comments go on; two after the question means that nothing else would come.
                if hasty.judge.at_once and not before and piece.count(b": keep-alive"):
                    before = received.decode()
                    hasty.judge.let_all()
        else:
            received = await answer.aread()
    return before, received.decode()


async def go_on_after_first_question(hasty: Courthouse) -> None:
    """Let the half of an answer that is held back come when the first half was judged."""
    exchange = await hasty.shop.upstream.seen.arrival()
    await exchange.stall()
    await hasty.judge.has_heard(1)

    async def has_answered() -> bool:
        return not hasty.judge.at_once

    await until(has_answered)
    exchange.release()


@pytest.mark.parametrize("ends_answer_early", [False, True])
async def test_nothing_leaves_before_the_verdict_and_everything_is_judged(
    hasty: Courthouse, *, ends_answer_early: bool
) -> None:
    """What a policy has ended before its end is not judged to its end, and nothing of it leaves."""
    await hasty.forbid(WORD, direction=Direction.RESPONSE, ends_answer_early=ends_answer_early)
    await hasty.forbid("no such word", direction=Direction.RESPONSE, mode=Mode.MONITORING)
    chance = random.Random(SEED)  # noqa: S311 - a test
    dropped_before = decisions_dropped()
    judged: Counter[str] = Counter()
    total: Counter[str] = Counter()
    expected = 0

    for number in range(STREAMS):
        path = chance.choice([CHAT, CHAT, RESPONSES])
        # The journal is bounded: of many streams it has only the last.
        hasty.shop.upstream.seen.clear()
        answer = drawn(chance, number, choices_max=3 if path == CHAT else 1)
        hasty.answers(
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
                beside.create_task(go_on_after_first_question(hasty))
            before, after = await received_while_judged(hasty, path, body)

        assert before, "the judge was asked while the caller waited"
        assert SAID not in before
        assert (SAID in after) is not answer.is_forbidden
        assert ("policy_violation" in after or "policy_error" in after) is answer.is_forbidden
        asked = [heard for heard in hasty.judge.heard if WORD in heard.rule]
        shown = "\n".join(max(asked, key=lambda heard: len(heard.said)).texts)
        expected += 2
        if ends_answer_early and answer.is_long and answer.is_forbidden:
            assert WORD in shown
            continue
        for (_, channel), text in answer.said.items():
            total[channel] += len(text)
            judged[channel] += len(text) if text in shown else 0
    assert judged == total, "characters by channel"
    assert total.keys() == set(CHANNELS)
    await hasty.has_recorded_or_dropped(expected, dropped_before=dropped_before)
