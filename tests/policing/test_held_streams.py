"""Random answers in random pieces: nothing leaves before the verdict, and all of it is judged.

What a backend says is drawn by chance: choices, channels, where pieces end, in which order they
come, and where the network cuts them.
"""

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from tests.identity.waiting import until
from tests.support.courthouse import BODIES, CHAT, RESPONSES, Courthouse, open_courthouse
from tests.support.world import World
from tollhouse.observability import metrics
from tollhouse.policies.types import Direction, Mode
from tollhouse.settings import InferenceSettings, Settings
from tollhouse.testing.upstream import ScriptedUpstream

pytestmark = pytest.mark.asyncio(loop_scope="module")

STREAMS = int(os.environ.get("TOLLHOUSE_STREAMS", "25"))
SEED = int(os.environ.get("TOLLHOUSE_SEED", "11"))
WORD = "forbidden"
SAID = "\u00e9"
"""A letter that only the backend says: it is in every answer, wherever pieces are cut."""
LONG_CHARACTERS = 6_000
LONG_PIECES = 4_000
"""In so many records it is looked at while it grows."""
CHANNELS = ("content", "reasoning_content", "refusal", "arguments")
DROPPED = "tollhouse_policy_decisions_dropped_total{"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What is said in each channel of each choice, and the records that say it."""

    said: dict[tuple[int, str], str]
    events: str
    choices: int
    is_forbidden: bool
    is_long: bool


def drawn(chance: random.Random, number: int, *, choices_max: int) -> Answer:
    choices = chance.randint(1, choices_max)
    places = [(choice, channel) for choice in range(choices) for channel in CHANNELS]
    spoken = chance.sample(places, chance.randint(1, len(places)))
    said = {
        place: f"{SAID}{number}x{index}q " + "".join(chance.choices(SAID * 4 + "ab \n\\", k=40))
        for index, place in enumerate(spoken)
    }
    is_long = chance.random() < 0.2
    if is_long:
        place = chance.choice(spoken)
        said[place] += "".join(chance.choices(SAID + "ab ", k=LONG_CHARACTERS))
    is_forbidden = chance.random() < 0.5
    if is_forbidden:
        place = chance.choice(spoken)
        at = chance.randint(0, len(said[place]))
        said[place] = said[place][:at] + WORD + said[place][at:]
    queues = {place: _cut(chance, text) for place, text in said.items()}
    records: list[dict[str, Any]] = []
    while queues:
        place = chance.choice(list(queues))
        records.append(_record(place, queues[place].pop(0)))
        if not queues[place]:
            del queues[place]
    records.append({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 9}})
    events = "".join(f"data: {json.dumps(record)}\n\n" for record in records)
    return Answer(
        said=said,
        events=events + "data: [DONE]\n\n",
        choices=choices,
        is_forbidden=is_forbidden,
        is_long=is_long,
    )


def _cut(chance: random.Random, text: str) -> list[str]:
    cuts = LONG_PIECES if len(text) > LONG_CHARACTERS else chance.randint(0, 12)
    ends = sorted(chance.sample(range(1, len(text)), min(len(text) - 1, cuts)))
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


def _record(place: tuple[int, str], piece: str) -> dict[str, Any]:
    choice, channel = place
    delta: dict[str, Any] = {channel: piece}
    if channel == "arguments":
        delta = {"tool_calls": [{"index": 0, "id": "c", "function": {"arguments": piece}}]}
    return {"choices": [{"index": choice, "delta": delta}]}


def dropped() -> float:
    lines = metrics.exposition(None).decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(DROPPED))


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


async def go_on_after_first_question(hasty: Courthouse, number: int) -> None:
    """Let the half of an answer that is held back come when the first half was judged."""
    exchange = await hasty.shop.upstream.seen.arrival(nth=number)
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
    dropped_before = dropped()
    judged = total = expected = 0

    for number in range(STREAMS):
        path = chance.choice([CHAT, CHAT, RESPONSES])
        answer = drawn(chance, number, choices_max=3 if path == CHAT else 1)
        hasty.answers(
            "",
            body=answer.events,
            content_type="text/event-stream",
            split_bytes=chance.choice([None, 50] if answer.is_long else [None, 1, 7, 50]),
            cut={"how": "stall", "after": 0, "inside": True} if answer.is_long else None,
        )
        fields = {"n": answer.choices} if path == CHAT else {}
        body = BODIES[path]("Hi", stream=True, **fields)

        async with asyncio.TaskGroup() as beside:
            if answer.is_long:
                beside.create_task(go_on_after_first_question(hasty, hasty.asked_of_backend + 1))
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
        total += sum(map(len, answer.said.values()))
        judged += sum(len(text) for text in answer.said.values() if text in shown)
    assert judged / total == 1.0

    async def are_all_there() -> bool:
        rows = await hasty.shop.world.database.fetch_all(
            "SELECT coalesce(sum(cardinality(scores)), 0) FROM examinations"
            " WHERE organization_id = $1",
            hasty.shop.world.organization_id,
        )
        return (int(rows[0][0]) + dropped() - dropped_before) / expected == 1.0

    await until(are_all_there)
