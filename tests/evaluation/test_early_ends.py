"""Answers that a policy ends while they are generated, because its version says so."""

import asyncio
from typing import Any

import httpx2
import pytest

from tests.identity.waiting import until
from tests.support.deployment import COMPLETION_PICO_USD, offering
from tests.support.judge import Fault, ReceivedQuestion
from tests.support.judged_deployment import (
    BODIES,
    CHAT,
    RESPONSES,
    JudgedDeployment,
    OpenJudged,
    events_of,
)
from tests.upstream.exchanges import ExchangeOutcome, RecordedExchange
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.policies import Direction, Mode
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATHS = pytest.mark.parametrize("path", [*BODIES])
WORDS = 2_000
LONG = "bread " + "word " * (WORDS - 2) + "end"
STALLED_AFTER = 1_000
"""Events, of which the first checkpoint takes less."""
EXAMINED = """
    SELECT outcomes, mode FROM evaluations
     WHERE organization_id = $1 AND direction = 'response'
"""


def endless(judged: JudgedDeployment) -> None:
    """A long answer that stands still until its caller hangs up."""
    judged.answers(LONG, cut={"how": "stall", "after": STALLED_AFTER})


async def streamed(
    judged: JudgedDeployment, path: str = CHAT
) -> tuple[httpx2.Response, RecordedExchange]:
    """What the caller got, and what the backend saw."""
    bound = "max_output_tokens" if path == RESPONSES else "max_tokens"
    seen = judged.asked_of_backend
    answer = await judged.send(path, BODIES[path]("Hi", stream=True, **{bound: 4_000}))
    return answer, judged.deployment.upstream.seen[seen]


def asked_about_parts(judged: JudgedDeployment) -> set[str]:
    return {
        question.rule for question in judged.judge.received if not question.content.endswith("end")
    }


async def examined(judged: JudgedDeployment, rows_expected: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    async def are_there() -> bool:
        org = judged.deployment.org
        rows = await org.database.fetch_all(EXAMINED, org.organization_id)
        found[:] = [dict(row) for row in rows]
        return len(found) >= rows_expected

    await until(are_there)
    return found


@PATHS
async def test_a_match_ends_the_answer_and_the_work_so_far_is_charged(
    judged: JudgedDeployment, path: str
) -> None:
    await judged.forbid("wine", direction=Direction.RESPONSE)
    policy_id = await judged.forbid("bread", direction=Direction.RESPONSE, ends_answer_early=True)
    await judged.forbid("word", direction=Direction.RESPONSE, mode=Mode.MONITORING)
    endless(judged)

    answer, exchange = await streamed(judged, path)

    assert answer.status_code == 403
    assert answer.json()["error"]["message"] == (
        f"The answer was withheld by policy {policy_id}. The model's work is charged. "
        "Change the request, or ask an administrator of the organization, who sees the policy's "
        "name."
    )
    assert await exchange.end() is ExchangeOutcome.CALLER_LEFT
    charged = (await judged.deployment.settled(1)).settled_pico_usd
    assert 100 * COMPLETION_PICO_USD < charged < WORDS * COMPLETION_PICO_USD
    by_mode = {row["mode"]: row["outcomes"] for row in await examined(judged, 2)}
    assert by_mode == {"enforcing": ["skipped", "match"], "monitoring": ["match"]}


@PATHS
async def test_after_the_status_line_it_is_an_event(impatient: JudgedDeployment, path: str) -> None:
    policy_id = await impatient.forbid(
        "bread", direction=Direction.RESPONSE, ends_answer_early=True
    )
    impatient.answers(LONG, before_first_event_ms=200, cut={"how": "stall", "after": STALLED_AFTER})

    answer, exchange = await streamed(impatient, path)

    last = events_of(answer.text)[-1]
    error = last["response"]["error"] if path == RESPONSES else last["error"]
    assert answer.status_code == 200
    assert policy_id in error["message"]
    assert "bread" not in answer.text
    assert "word" not in answer.text
    assert await exchange.end() is ExchangeOutcome.CALLER_LEFT


async def test_without_the_opt_in_the_answer_is_generated_to_its_end(
    judged: JudgedDeployment,
) -> None:
    await judged.forbid("bread", direction=Direction.RESPONSE)
    judged.answers(LONG)

    answer, exchange = await streamed(judged)

    assert answer.status_code == 403
    assert await exchange.end() is ExchangeOutcome.COMPLETE
    assert (await judged.deployment.settled(1)).settled_pico_usd > WORDS * COMPLETION_PICO_USD


async def test_only_who_opted_in_is_asked_about_a_part(judged: JudgedDeployment) -> None:
    """An absence, here of the end, is true of every part."""
    await judged.forbid("absence", direction=Direction.RESPONSE)
    await judged.forbid("wine", direction=Direction.RESPONSE, ends_answer_early=True)
    judged.answers(LONG)

    def lacks_the_end(question: ReceivedQuestion) -> float:
        return 0.95 if "absence" in question.rule and not question.content.endswith("end") else 0.05

    judged.judge.answers = lacks_the_end

    answer, exchange = await streamed(judged)

    assert answer.status_code == 200
    assert "[DONE]" in answer.text
    assert asked_about_parts(judged) == {'Does it say "wine"?'}
    assert await exchange.end() is ExchangeOutcome.COMPLETE
    assert [row["outcomes"] for row in await examined(judged, 1)] == [["no_match", "no_match"]]


async def test_a_judge_that_fails_on_a_part_changes_nothing(judged: JudgedDeployment) -> None:
    await judged.forbid("wine", direction=Direction.RESPONSE, ends_answer_early=True)
    judged.answers(LONG)
    judged.judge.fails = lambda question: (
        None if question.content.endswith("end") else Fault.LOW_COVERAGE
    )

    answer, _ = await streamed(judged)

    assert asked_about_parts(judged)
    assert answer.status_code == 200
    assert answer.text.count("word") == WORDS - 2
    assert [row["outcomes"] for row in await examined(judged, 1)] == [["no_match"]]


async def test_the_verdict_does_not_wait_for_a_question_about_a_part(
    judged: JudgedDeployment,
) -> None:
    await judged.forbid("wine", direction=Direction.RESPONSE, ends_answer_early=True)
    judged.answers(LONG, cut={"how": "stall", "after": STALLED_AFTER})
    judged.judge.holds_answers = True
    arriving = asyncio.create_task(
        judged.deployment.upstream.seen.arrival(nth=1 + judged.asked_of_backend)
    )
    asking = asyncio.create_task(streamed(judged))
    exchange = await arriving
    await judged.judge.has_received(1)

    exchange.release()
    await judged.judge.has_received(2)

    assert judged.judge.received[1].content.endswith("end")
    judged.judge.let_all()
    answer, _ = await asking
    assert answer.status_code == 200


async def test_a_backend_that_bills_to_the_end_is_heard_to_the_end(
    open_judged: OpenJudged, settings: Settings, upstream: ScriptedUpstream
) -> None:
    offered = offering(settings, upstream.base_url, stops_when_cancelled=False)
    judged = await open_judged(offered)
    await judged.forbid("wine", direction=Direction.RESPONSE)
    await judged.forbid("bread", direction=Direction.RESPONSE, ends_answer_early=True)
    judged.answers(LONG)

    answer, exchange = await streamed(judged)

    assert answer.status_code == 403
    assert 'Does it say "bread"?' not in asked_about_parts(judged)
    assert await exchange.end() is ExchangeOutcome.COMPLETE


async def test_no_part_is_asked_about_that_would_leave_too_little_for_the_verdict(
    open_judged: OpenJudged, offered: Settings
) -> None:
    """The verdict fits; once more as much as a part of it takes does not."""
    judged = await open_judged(offered, request_tokens_max=650)
    await judged.forbid("wine", direction=Direction.RESPONSE)
    await judged.forbid("bread", direction=Direction.RESPONSE, ends_answer_early=True)
    judged.answers("bread " + "word " * 300 + "end")

    answer, exchange = await streamed(judged)

    assert answer.status_code == 403
    assert 'Does it say "bread"?' not in asked_about_parts(judged)
    assert await exchange.end() is ExchangeOutcome.COMPLETE
