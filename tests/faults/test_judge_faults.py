"""A judge that fails in every way: enforcing lets nothing through, monitoring refuses nothing."""

import asyncio
import json
import os
import random
import re
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.cli.commands import free_port
from tests.support.courthouse import (
    BODIES,
    CHAT,
    RESPONSES,
    Courthouse,
    courthouse_of,
    judged_by,
    open_courthouse,
)
from tests.support.judge import Fault, Heard, ScriptedJudge
from tests.support.shop import customer_of, offering, open_shop
from tests.support.world import World
from tollhouse.policies.types import Direction, Mode
from tollhouse.settings import Settings
from tollhouse.testing.upstream import ScriptedUpstream

FAULTS_IN_A_ROW = int(os.environ.get("TOLLHOUSE_JUDGE_FAULTS", "150"))
AT_ONCE = 6
SEED = int(os.environ.get("TOLLHOUSE_SEED", "7"))
STAGES = ("asked", "told", "watched")
"""Where the judge fails: on the request, on the answer, or where only monitoring asks."""
_MARK = re.compile(r"\[\[(\w+) (\w+)\]\]")


@dataclass(frozen=True, kw_only=True)
class Case:
    number: int
    fault: Fault
    stage: str
    path: str
    is_stream: bool

    @property
    def answer(self) -> str:
        mark = f"[[{self.fault.name} {self.stage}]]" if self.stage != "asked" else ""
        return f"answer-number-{self.number}. {mark}"

    def body(self) -> dict[str, Any]:
        script = json.dumps({"script": {"text": self.answer}})
        mark = f"[[{self.fault.name} {self.stage}]]" if self.stage != "told" else ""
        # The script is part of the request, and must not set the judge off before its turn.
        script = script.replace("[[", "\\u005b\\u005b")
        return BODIES[self.path](f"{script}\n{mark}", stream=self.is_stream)


def fails_as_marked(heard: Heard) -> Fault | None:
    """By what the content says, at the stage whose rule is asked."""
    found = _MARK.search(heard.said)
    if found is None or f'"{found[2]} secret"' not in heard.rule:
        return None
    return Fault[found[1]]


@pytest.fixture
async def courthouse(
    settings: Settings, upstream: ScriptedUpstream, world: World
) -> AsyncIterator[Courthouse]:
    judge = ScriptedJudge(fails=fails_as_marked)
    async with open_courthouse(
        settings, upstream, world, judge, deadline_seconds=1.0, request_questions_max=2
    ) as opened:
        await opened.forbid("asked secret", direction=Direction.REQUEST)
        await opened.forbid("told secret", direction=Direction.RESPONSE)
        await opened.forbid("watched secret", mode=Mode.MONITORING)
        yield opened


@pytest.fixture
async def watched(courthouse: Courthouse, other_world: World) -> Courthouse:
    """Another customer before the same judge, to whom nothing but monitoring applies."""
    shop = courthouse.shop
    opened = courthouse_of(
        await customer_of(shop.gateway, shop.upstream, other_world), courthouse.judge
    )
    await opened.forbid("watched secret", mode=Mode.MONITORING)
    return opened


def outcome(answer: httpx2.Response) -> str:
    if answer.status_code == 200 and "policy_error" not in answer.text:
        return "served"
    assert "policy_error" in answer.text, answer.text
    assert answer.status_code in {200, 503}, "a match was made of a failure"
    return "refused"


async def test_no_fault_of_a_judge_lets_anything_through_or_stops_what_is_watched(
    courthouse: Courthouse, watched: Courthouse
) -> None:
    chance = random.Random(SEED)  # noqa: S311 - a test
    cases = [
        Case(
            number=number,
            fault=chance.choice(list(Fault)),
            stage=chance.choice(STAGES),
            path=chance.choice([CHAT, RESPONSES]),
            is_stream=chance.random() < 0.5,
        )
        for number in range(FAULTS_IN_A_ROW)
    ]
    turns = asyncio.Semaphore(AT_ONCE)
    counted: Counter[tuple[str, str]] = Counter()

    async def run(case: Case) -> None:
        async with turns:
            # One sound answer forgives a replica what it did: else most faults would never happen.
            sound = await courthouse.send(CHAT, BODIES[CHAT](f"sound {case.number}"))
            assert sound.status_code in {200, 503}
            customer = watched if case.stage == "watched" else courthouse
            answer = await customer.send(case.path, case.body())
        counted[case.stage, outcome(answer)] += 1
        has_answer = f"answer-number-{case.number}." in answer.text
        assert has_answer is (case.stage == "watched"), case

    await asyncio.gather(*map(run, cases))

    met = [heard.rule for heard in courthouse.judge.heard if fails_as_marked(heard)]
    assert all(any(stage in rule for rule in met) for stage in STAGES), "it fails everywhere"
    drawn = Counter(case.stage for case in cases)
    assert counted == {
        ("asked", "refused"): drawn["asked"],
        ("told", "refused"): drawn["told"],
        ("watched", "served"): drawn["watched"],
    }


async def test_faults_that_only_monitoring_meets_are_felt_by_nobody(
    settings: Settings, upstream: ScriptedUpstream, world: World
) -> None:
    judge = ScriptedJudge(fails=fails_as_marked)
    async with open_courthouse(settings, upstream, world, judge, deadline_seconds=1.0) as opened:
        await opened.forbid("watched secret", mode=Mode.MONITORING)
        cases = [
            Case(number=number, fault=fault, stage="watched", path=path, is_stream=is_stream)
            for number, (fault, path, is_stream) in enumerate(
                (fault, path, is_stream)
                for fault in Fault
                for path in (CHAT, RESPONSES)
                for is_stream in (False, True)
            )
        ]
        for case in cases:
            answer = await opened.send(case.path, case.body())
            assert outcome(answer) == "served", case
            assert f"answer-number-{case.number}." in answer.text, case


@pytest.mark.parametrize("direction", [Direction.REQUEST, Direction.RESPONSE])
async def test_a_judge_that_is_not_there_lets_nothing_through(
    settings: Settings, upstream: ScriptedUpstream, world: World, direction: Direction
) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}/v1"
    absent = judged_by(offering(settings, upstream.base_url), nowhere, deadline_seconds=1.0)
    async with open_shop(absent, upstream, world) as shop:
        courthouse = Courthouse(shop=shop, judge=ScriptedJudge())
        await courthouse.forbid("bread", direction=direction)
        for path in (CHAT, RESPONSES):
            for is_stream in (False, True):
                answer = await courthouse.send(path, BODIES[path]("Hi", stream=is_stream))
                assert answer.status_code == 503
                assert answer.headers["x-should-retry"] == "false"
        assert (await shop.settled(4)).settled_pico_usd == 0
