"""A judge that fails in every way: enforcing lets nothing through, monitoring refuses nothing."""

import asyncio
import json
import os
import random
import re
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx2
import pytest

from tests.cli.commands import free_port
from tests.support import seeds
from tests.support.deployment import customer_of, offering, open_deployment
from tests.support.judge import Fault, ReceivedQuestion, ScriptedJudge
from tests.support.judged_deployment import (
    BODIES,
    CHAT,
    JudgedDeployment,
    decisions_dropped,
    judged_by,
    judged_deployment_of,
    open_judged_deployment,
)
from tests.support.organization_fixture import OrganizationFixture
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.policies import Direction, Mode
from tollhouse.settings import Settings

FAULTS_IN_A_ROW = int(os.environ.get("TOLLHOUSE_JUDGE_FAULTS", "150"))
AT_ONCE = 6
STAGES = ("asked", "told", "watched")
"""Where the judge fails: on the request, on the answer, or where only monitoring asks."""
_MARK = re.compile(r"\[\[(\w+) (\w+)\]\]")
_NUMBER = re.compile(r"answer-number-(\d+)")


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


def drawn_case(chance: random.Random, number: int) -> Case:
    return Case(
        number=number,
        fault=chance.choice(list(Fault)),
        stage=chance.choice(STAGES),
        path=chance.choice(list(BODIES)),
        is_stream=chance.random() < 0.5,
    )


def met_by(judge: ScriptedJudge) -> set[tuple[str, str]]:
    """Return the numbers and stages of all cases in which the judge failed."""
    marks = (
        (_NUMBER.search(question.content), _MARK.search(question.content))
        for question in judge.received
        if fails_as_marked(question)
    )
    return {(number[1], mark[2]) for number, mark in marks if number and mark}


def fails_as_marked(question: ReceivedQuestion) -> Fault | None:
    """By what the content says, at the stage whose rule is asked."""
    found = _MARK.search(question.content)
    if found is None or f'"{found[2]} secret"' not in question.rule:
        return None
    return Fault[found[1]]


@pytest.fixture
async def judged(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> AsyncIterator[JudgedDeployment]:
    judge = ScriptedJudge(fails=fails_as_marked)
    async with open_judged_deployment(
        settings, upstream, org, judge, deadline_seconds=1.0, request_questions_max=2
    ) as opened:
        await opened.forbid("asked secret", direction=Direction.REQUEST)
        await opened.forbid("told secret", direction=Direction.RESPONSE)
        await opened.forbid("watched secret", mode=Mode.MONITORING)
        yield opened


@pytest.fixture
async def watched(judged: JudgedDeployment, other_org: OrganizationFixture) -> JudgedDeployment:
    """Another customer before the same judge, to whom nothing but monitoring applies."""
    deployment = judged.deployment
    opened = judged_deployment_of(
        await customer_of(deployment.gateway, deployment.upstream, other_org), judged.judge
    )
    await opened.forbid("watched secret", mode=Mode.MONITORING)
    return opened


def outcome(answer: httpx2.Response) -> str:
    assert not any(f"{stage} secret" in answer.text for stage in STAGES), "a rule leaked"
    if answer.status_code == 200 and "policy_error" not in answer.text:
        return "served"
    assert "policy_error" in answer.text, answer.text
    assert answer.status_code in {200, 503}, "a match was made of a failure"
    return "refused"


@pytest.mark.guarantee("T36")
async def test_no_fault_of_a_judge_lets_anything_through_or_stops_what_is_watched(
    judged: JudgedDeployment, watched: JudgedDeployment
) -> None:
    chance, numbers = seeds.chance(), count()
    turns = asyncio.Semaphore(AT_ONCE)
    drawn: Counter[str] = Counter()
    counted: Counter[tuple[str, str]] = Counter()

    async def run(case: Case) -> None:
        async with turns:
            # One sound answer forgives a replica what it did: else most faults would never happen.
            sound = await judged.send(CHAT, BODIES[CHAT](f"sound {case.number}"))
            assert sound.status_code in {200, 503}
            customer = watched if case.stage == "watched" else judged
            answer = await customer.send(case.path, case.body())
        counted[case.stage, outcome(answer)] += 1
        has_answer = f"answer-number-{case.number}." in answer.text
        assert has_answer is (case.stage == "watched"), case

    # An open breaker keeps some faults from happening: others are drawn for them.
    while (missing := FAULTS_IN_A_ROW - len(met_by(judged.judge))) > 0:
        cases = [drawn_case(chance, next(numbers)) for _ in range(missing)]
        await asyncio.gather(*map(run, cases))
        drawn.update(case.stage for case in cases)

    stages = {stage for _, stage in met_by(judged.judge)}
    assert stages == set(STAGES), "it fails everywhere"
    assert counted == {
        ("asked", "refused"): drawn["asked"],
        ("told", "refused"): drawn["told"],
        ("watched", "served"): drawn["watched"],
    }


@pytest.mark.guarantee("T36")
async def test_faults_that_only_monitoring_meets_are_felt_by_nobody(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> None:
    judge, dropped_before = ScriptedJudge(fails=fails_as_marked), decisions_dropped()
    async with open_judged_deployment(
        settings, upstream, org, judge, deadline_seconds=1.0
    ) as opened:
        await opened.forbid("watched secret", mode=Mode.MONITORING)
        cases = [
            Case(number=number, fault=fault, stage="watched", path=path, is_stream=is_stream)
            for number, (fault, path, is_stream) in enumerate(
                (fault, path, is_stream)
                for fault in Fault
                for path in BODIES
                for is_stream in (False, True)
            )
        ]
        for case in cases:
            answer = await opened.send(case.path, case.body())
            assert outcome(answer) == "served", case
            assert f"answer-number-{case.number}." in answer.text, case
        await opened.has_recorded_or_dropped(2 * len(cases), dropped_before=dropped_before)


@pytest.mark.guarantee("T36")
@pytest.mark.parametrize("direction", [Direction.REQUEST, Direction.RESPONSE])
async def test_a_judge_that_is_not_there_lets_nothing_through(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture, direction: Direction
) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}/v1"
    absent = judged_by(offering(settings, upstream.base_url), nowhere, deadline_seconds=1.0)
    async with open_deployment(absent, upstream, org) as deployment:
        judged = JudgedDeployment(deployment=deployment, judge=ScriptedJudge())
        await judged.forbid("bread", direction=direction)
        for path in BODIES:
            for is_stream in (False, True):
                answer = await judged.send(path, BODIES[path]("Hi", stream=is_stream))
                assert answer.status_code == 503
                assert answer.headers["x-should-retry"] == "false"
        assert (await deployment.settled(2 * len(BODIES))).settled_pico_usd == 0
