"""Answers that a policy ends while they are generated, because its version says so."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

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
    courthouse_of,
    events_of,
    judged_by,
    open_courthouse,
)
from tests.support.judge import Fault, Heard, ScriptedJudge, running_judge
from tests.support.shop import COMPLETION_PICO_USD, offering, open_shop
from tests.support.world import World
from tollhouse.policies.types import Direction, Mode
from tollhouse.settings import InferenceSettings, Settings
from tollhouse.testing.exchanges import Exchange, Outcome
from tollhouse.testing.upstream import ScriptedUpstream

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATHS = pytest.mark.parametrize("path", [CHAT, RESPONSES])
WORDS = 2_000
LONG = "bread " + "word " * (WORDS - 2) + "end"
STALLED_AFTER = 1_000
"""Events, of which the first checkpoint takes less."""
EXAMINED = """
    SELECT outcomes, mode FROM examinations
     WHERE organization_id = $1 AND direction = 'response'
"""


@pytest_asyncio.fixture(loop_scope="module")
async def hasty(
    settings: Settings, upstream: ScriptedUpstream, world: World
) -> AsyncIterator[Courthouse]:
    """A gateway that keeps nobody waiting for a status line."""
    quick = msgspec.structs.replace(
        settings, inference=InferenceSettings(head_wait_seconds=0.05, keep_alive_seconds=0.05)
    )
    async with open_courthouse(quick, upstream, world) as opened:
        yield opened


def endless(courthouse: Courthouse) -> None:
    """A long answer that stands still until its caller hangs up."""
    courthouse.answers(LONG, cut={"how": "stall", "after": STALLED_AFTER})


async def streamed(courthouse: Courthouse, path: str = CHAT) -> tuple[httpx2.Response, Exchange]:
    """What the caller got, and what the backend saw."""
    bound = {CHAT: "max_tokens", RESPONSES: "max_output_tokens"}[path]
    seen = courthouse.asked_of_backend
    answer = await courthouse.send(path, BODIES[path]("Hi", stream=True, **{bound: 4_000}))
    return answer, courthouse.shop.upstream.seen[seen]


def asked_about_parts(courthouse: Courthouse) -> set[str]:
    return {heard.rule for heard in courthouse.judge.heard if not heard.said.endswith("end")}


async def examined(courthouse: Courthouse, rows_expected: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    async def are_there() -> bool:
        world = courthouse.shop.world
        rows = await world.database.fetch_all(EXAMINED, world.organization_id)
        found[:] = [dict(row) for row in rows]
        return len(found) >= rows_expected

    await until(are_there)
    return found


@PATHS
async def test_a_match_ends_the_answer_and_the_work_so_far_is_charged(
    courthouse: Courthouse, path: str
) -> None:
    await courthouse.forbid("wine", direction=Direction.RESPONSE)
    policy_id = await courthouse.forbid(
        "bread", direction=Direction.RESPONSE, ends_answer_early=True
    )
    await courthouse.forbid("word", direction=Direction.RESPONSE, mode=Mode.MONITORING)
    endless(courthouse)

    answer, exchange = await streamed(courthouse, path)

    assert answer.status_code == 403
    assert answer.json()["error"]["message"] == (
        f"The answer was withheld by policy {policy_id}. The model's work is charged. "
        "Change the request, or ask an administrator of the organization, who sees the policy's "
        "name."
    )
    assert await exchange.end() is Outcome.CALLER_LEFT
    charged = (await courthouse.shop.settled(1)).settled_pico_usd
    assert 100 * COMPLETION_PICO_USD < charged < WORDS * COMPLETION_PICO_USD
    by_mode = {row["mode"]: row["outcomes"] for row in await examined(courthouse, 2)}
    assert by_mode == {"enforcing": ["skipped", "match"], "monitoring": ["match"]}


@PATHS
async def test_after_the_status_line_it_is_an_event(hasty: Courthouse, path: str) -> None:
    policy_id = await hasty.forbid("bread", direction=Direction.RESPONSE, ends_answer_early=True)
    hasty.answers(LONG, before_first_event_ms=200, cut={"how": "stall", "after": STALLED_AFTER})

    answer, exchange = await streamed(hasty, path)

    last = events_of(answer.text)[-1]
    error = last["error"] if path == CHAT else last["response"]["error"]
    assert answer.status_code == 200
    assert policy_id in error["message"]
    assert "bread" not in answer.text
    assert "word" not in answer.text
    assert await exchange.end() is Outcome.CALLER_LEFT


async def test_without_the_opt_in_the_answer_is_generated_to_its_end(
    courthouse: Courthouse,
) -> None:
    await courthouse.forbid("bread", direction=Direction.RESPONSE)
    courthouse.answers(LONG)

    answer, exchange = await streamed(courthouse)

    assert answer.status_code == 403
    assert await exchange.end() is Outcome.COMPLETE
    assert (await courthouse.shop.settled(1)).settled_pico_usd > WORDS * COMPLETION_PICO_USD


async def test_only_who_opted_in_is_asked_about_a_part(courthouse: Courthouse) -> None:
    """An absence, here of the end, is true of every part."""
    await courthouse.forbid("absence", direction=Direction.RESPONSE)
    await courthouse.forbid("wine", direction=Direction.RESPONSE, ends_answer_early=True)
    courthouse.answers(LONG)

    def lacks_the_end(heard: Heard) -> float:
        return 0.95 if "absence" in heard.rule and not heard.said.endswith("end") else 0.05

    courthouse.judge.answers = lacks_the_end

    answer, exchange = await streamed(courthouse)

    assert answer.status_code == 200
    assert "[DONE]" in answer.text
    assert asked_about_parts(courthouse) == {'Does it say "wine"?'}
    assert await exchange.end() is Outcome.COMPLETE
    assert [row["outcomes"] for row in await examined(courthouse, 1)] == [["no_match", "no_match"]]


async def test_a_judge_that_fails_on_a_part_changes_nothing(courthouse: Courthouse) -> None:
    await courthouse.forbid("wine", direction=Direction.RESPONSE, ends_answer_early=True)
    courthouse.answers(LONG)
    courthouse.judge.fails = lambda heard: (
        None if heard.said.endswith("end") else Fault.LOW_COVERAGE
    )

    answer, _ = await streamed(courthouse)

    assert asked_about_parts(courthouse)
    assert answer.status_code == 200
    assert answer.text.count("word") == WORDS - 2
    assert [row["outcomes"] for row in await examined(courthouse, 1)] == [["no_match"]]


async def test_the_verdict_does_not_wait_for_a_question_about_a_part(
    courthouse: Courthouse,
) -> None:
    await courthouse.forbid("wine", direction=Direction.RESPONSE, ends_answer_early=True)
    courthouse.answers(LONG, cut={"how": "stall", "after": STALLED_AFTER})
    courthouse.judge.holds_answers = True
    arriving = asyncio.create_task(
        courthouse.shop.upstream.seen.arrival(nth=1 + courthouse.asked_of_backend)
    )
    asking = asyncio.create_task(streamed(courthouse))
    exchange = await arriving
    await courthouse.judge.has_heard(1)

    exchange.release()
    await courthouse.judge.has_heard(2)

    assert courthouse.judge.heard[1].said.endswith("end")
    courthouse.judge.let_all()
    answer, _ = await asking
    assert answer.status_code == 200


async def test_a_backend_that_bills_to_the_end_is_heard_to_the_end(
    settings: Settings, upstream: ScriptedUpstream, world: World
) -> None:
    upstream.scripts.clear()
    offered = offering(settings, upstream.base_url, stops_when_cancelled=False)
    async with (
        running_judge(ScriptedJudge()) as judge,
        open_shop(judged_by(offered, judge.base_url), upstream, world) as shop,
    ):
        courthouse = courthouse_of(shop, judge)
        await courthouse.forbid("wine", direction=Direction.RESPONSE)
        await courthouse.forbid("bread", direction=Direction.RESPONSE, ends_answer_early=True)
        courthouse.answers(LONG)

        answer, exchange = await streamed(courthouse)

        assert answer.status_code == 403
        assert 'Does it say "bread"?' not in asked_about_parts(courthouse)
        assert await exchange.end() is Outcome.COMPLETE


async def test_no_part_is_asked_about_that_would_leave_too_little_for_the_verdict(
    settings: Settings, upstream: ScriptedUpstream, world: World
) -> None:
    """The verdict fits; once more as much as a part of it takes does not."""
    upstream.scripts.clear()
    async with open_courthouse(settings, upstream, world, request_tokens_max=650) as courthouse:
        await courthouse.forbid("wine", direction=Direction.RESPONSE)
        await courthouse.forbid("bread", direction=Direction.RESPONSE, ends_answer_early=True)
        courthouse.answers("bread " + "word " * 300 + "end")

        answer, exchange = await streamed(courthouse)

        assert answer.status_code == 403
        assert 'Does it say "bread"?' not in asked_about_parts(courthouse)
        assert await exchange.end() is Outcome.COMPLETE
