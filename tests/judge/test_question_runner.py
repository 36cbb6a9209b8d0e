"""Many questions over the wire: order, bounds, early ends, retries, and what is remembered."""

import asyncio
from collections import Counter
from uuid import uuid4

import pytest

from tests.judge.cases import asks_for, saying, subject_of
from tests.judge.conftest import Asks
from tests.support.gateway import TIMEOUT_SECONDS
from tests.support.judge import Fault, ReceivedQuestion, ScriptedJudge
from tollhouse.base.ids import OrganizationId
from tollhouse.base.policies import Direction, EvaluationOutcome, Mode
from tollhouse.evaluation.judge.verdict import refusal
from tollhouse.evaluation.types import FailureReason
from tollhouse.policies.types import AppliedPolicy

BREAD, CHEESE = asks_for("bread"), asks_for("cheese")


async def a_moment() -> None:
    """Wait until everything that is not blocked has run."""
    for _ in range(200):
        await asyncio.sleep(0)


def monitored(*words: str) -> list[AppliedPolicy]:
    return [asks_for(word, mode=Mode.MONITORING) for word in words]


async def test_every_policy_gets_its_answer(asking: Asks) -> None:
    policies = monitored("bread", "cheese", "wine")

    found = await asking().evaluate(subject_of(saying("bread and wine")), policies)

    assert [each.outcome for each in found] == [
        EvaluationOutcome.MATCH,
        EvaluationOutcome.NO_MATCH,
        EvaluationOutcome.MATCH,
    ]
    assert [each.policy for each in found] == policies
    assert all(each.score is not None and each.windows == 1 for each in found)


async def test_one_question_is_ahead_of_all_others(asking: Asks, judge: ScriptedJudge) -> None:
    """The others find the content in the judge's prefix cache."""
    judge.holds_answers = True
    policies = monitored(*(f"word {number}" for number in range(20)))
    task = asyncio.ensure_future(asking().evaluate(subject_of(saying("bread")), policies))

    await judge.has_received(1)
    await a_moment()
    assert judge.at_once == 1
    judge.let(1)
    await judge.has_received(1 + 8)
    judge.let_all()

    assert len(await task) == 20


async def test_questions_of_one_request_are_bounded(asking: Asks, judge: ScriptedJudge) -> None:
    judge.holds_answers = True
    policies = monitored(*(f"word {number}" for number in range(60)))
    asks = asking(request_max=3)
    task = asyncio.ensure_future(asks.evaluate(subject_of(saying("bread")), policies))

    await judge.has_received(1)
    judge.let(1)
    await judge.has_received(1 + 3)
    await a_moment()
    judge.let_all()

    assert len(await task) == 60
    assert judge.most_at_once == 3


@pytest.mark.parametrize("bound", ["organization_max", "worker_max"])
async def test_questions_of_an_organization_and_of_the_worker_are_bounded(
    asking: Asks, judge: ScriptedJudge, bound: str
) -> None:
    judge.holds_answers = True
    asks = asking(**{bound: 4})
    subjects = [subject_of(saying(f"content {number}")) for number in range(10)]
    tasks = [asyncio.ensure_future(asks.evaluate(each, [BREAD])) for each in subjects]

    await judge.has_received(4)
    await a_moment()
    judge.let_all()
    await asyncio.gather(*tasks)

    assert judge.most_at_once == 4


async def test_an_organization_that_asks_much_leaves_places_for_others(
    asking: Asks, judge: ScriptedJudge
) -> None:
    judge.holds_answers = True
    asks = asking(organization_max=2, worker_max=4)
    busy = [
        asyncio.ensure_future(asks.evaluate(subject_of(saying(str(number))), [BREAD]))
        for number in range(10)
    ]
    await judge.has_received(2)

    other = subject_of(saying("another"), OrganizationId(uuid4()))
    task = asyncio.ensure_future(asks.evaluate(other, [CHEESE]))
    await judge.has_received(3)

    assert judge.received[-1].rule == CHEESE.rule
    judge.let_all()
    await asyncio.gather(*busy, task)


async def test_asking_ends_with_an_enforcing_match(asking: Asks, judge: ScriptedJudge) -> None:
    policies = [asks_for("a very long word: bread"), *(asks_for(str(n)) for n in range(50))]
    judge.answers = lambda question: 0.9 if "bread" in question.rule else 0.1

    found = await asking().evaluate(subject_of(saying("bread")), policies)

    assert len(judge.received) == 1
    assert found[0].outcome is EvaluationOutcome.MATCH
    assert {each.outcome for each in found[1:]} == {EvaluationOutcome.SKIPPED}


async def test_a_match_calls_back_whoever_still_waits(asking: Asks, judge: ScriptedJudge) -> None:
    """A judge that stalls on one question does not delay the match of another."""
    policies = [asks_for("the longest goes ahead"), CHEESE, BREAD]
    judge.fails = lambda question: Fault.STALLS if "cheese" in question.rule else None

    async with asyncio.timeout(TIMEOUT_SECONDS):
        found = await asking().evaluate(subject_of(saying("bread")), policies)

    assert found[2].outcome is EvaluationOutcome.MATCH
    assert found[1].outcome is EvaluationOutcome.SKIPPED


async def test_content_longer_than_a_window_is_judged_to_its_end(
    asking: Asks, judge: ScriptedJudge
) -> None:
    """A judge that reads only the first window would miss the last message."""
    content = saying("x" * 50_000, "y" * 20_000 + "bread")
    asks = asking(context_tokens=4_000, question_tokens_max=500)

    (found,) = await asks.evaluate(subject_of(content), [BREAD])

    assert found.outcome is EvaluationOutcome.MATCH
    assert max(len(question.prompt) for question in judge.received) < 4_000 * 3


async def test_a_long_content_that_does_not_match_was_seen_whole(
    asking: Asks, judge: ScriptedJudge
) -> None:
    texts = [" ".join(map(str, range(9_000))), " ".join(map(str, range(9_000, 12_000)))]
    asks = asking(context_tokens=4_000, question_tokens_max=500)

    (found,) = await asks.evaluate(subject_of(saying(*texts)), [BREAD])

    assert found.outcome is EvaluationOutcome.NO_MATCH
    assert found.windows == len(judge.received)
    whole = "".join(texts)
    reach = 0
    for question in sorted(judge.received, key=lambda question: whole.index(question.content)):
        assert whole.index(question.content) <= reach
        reach = whole.index(question.content) + len(question.content)
    assert reach == len(whole)


async def test_an_estimate_that_was_too_high_costs_one_question(
    asking: Asks, judge: ScriptedJudge
) -> None:
    judge.prompt_characters_max = 8_000
    policies = monitored("bread", "cheese", "wine", "the longest goes ahead")

    found = await asking().evaluate(subject_of(saying("x" * 20_000 + "wine")), policies)

    outcomes = [each.outcome for each in found]
    assert outcomes == [
        EvaluationOutcome.NO_MATCH,
        EvaluationOutcome.NO_MATCH,
        EvaluationOutcome.MATCH,
        EvaluationOutcome.NO_MATCH,
    ]
    refused = [question for question in judge.received if len(question.prompt) > 8_000]
    assert {question.rule for question in refused} == {policies[-1].rule}


class FailsOnce:
    """Fails every question the first time it is asked."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._received: Counter[str] = Counter()

    def __call__(self, question: ReceivedQuestion) -> Fault | None:
        self._received[question.rule] += 1
        return self._fault if self._received[question.rule] == 1 else None


RETRIED = [fault for fault in Fault if fault not in {Fault.STALLS, Fault.REFUSES_400}]


@pytest.mark.parametrize("fault", RETRIED)
async def test_what_gave_no_answer_is_asked_once_more(
    asking: Asks, judge: ScriptedJudge, fault: Fault
) -> None:
    judge.fails = FailsOnce(fault)

    found = await asking().evaluate(subject_of(saying("bread")), [CHEESE])

    assert found[0].outcome is EvaluationOutcome.NO_MATCH


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.STALLS])
async def test_a_judge_that_goes_on_failing_is_never_a_no(
    asking: Asks, judge: ScriptedJudge, fault: Fault
) -> None:
    judge.fails = lambda _: fault

    found = await asking().evaluate(subject_of(saying("nothing")), [BREAD])

    assert found[0].outcome is EvaluationOutcome.FAILED
    assert found[0].reason is not None
    assert refusal(found, Direction.REQUEST) is not None
    # The port itself asks up to three times where a connection broke off.
    assert len(judge.received) <= 2 * 3


@pytest.mark.parametrize("mode", Mode)
async def test_a_failure_on_one_of_several_windows_is_never_a_no(
    asking: Asks, judge: ScriptedJudge, mode: Mode
) -> None:
    content = saying("x" * 20_000, "y" * 20_000 + "unreadable")
    judge.fails = lambda question: Fault.ERROR_500 if "unreadable" in question.content else None
    runner = asking(context_tokens=4_000, question_tokens_max=500)

    (found,) = await runner.evaluate(subject_of(content), [asks_for("bread", mode=mode)])

    assert len({question.content for question in judge.received}) > 1
    assert (found.outcome, found.reason) == (
        EvaluationOutcome.FAILED,
        FailureReason.UNREACHABLE,
    )


async def test_a_threshold_within_the_bounds_is_a_failure(
    asking: Asks, judge: ScriptedJudge
) -> None:
    judge.fails = lambda _: Fault.UNDECIDED

    sure, unsure = await asking().evaluate(
        subject_of(saying("nothing")),
        [
            asks_for("cheese or so", mode=Mode.MONITORING, threshold_basis_points=9_999),
            asks_for("bread", mode=Mode.MONITORING, threshold_basis_points=1_000),
        ],
    )

    assert sure.outcome is EvaluationOutcome.NO_MATCH
    assert (unsure.outcome, unsure.reason) == (
        EvaluationOutcome.FAILED,
        FailureReason.UNDECIDED,
    )


async def test_a_judge_that_stalls_is_waited_for_no_longer_than_the_deadline(
    asking: Asks, judge: ScriptedJudge
) -> None:
    judge.fails = lambda question: Fault.STALLS if "cheese" in question.rule else None
    policies = monitored("the longest goes ahead", "bread", "cheese")

    found = await asking(deadline_seconds=1.0).evaluate(subject_of(saying("bread")), policies)

    assert found[1].outcome is EvaluationOutcome.MATCH
    assert (found[2].outcome, found[2].reason) == (
        EvaluationOutcome.FAILED,
        FailureReason.TIMED_OUT,
    )


async def test_a_caller_who_leaves_takes_the_questions_along(
    asking: Asks, judge: ScriptedJudge
) -> None:
    judge.holds_answers = True
    asks = asking(worker_max=1)
    task = asyncio.ensure_future(asks.evaluate(subject_of(saying("bread")), [BREAD]))
    await judge.has_received(1)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    judge.let_all()
    (found,) = await asks.evaluate(subject_of(saying("bread")), [BREAD])
    assert found.outcome is EvaluationOutcome.MATCH


async def test_the_same_content_is_not_judged_twice(asking: Asks, judge: ScriptedJudge) -> None:
    asks, judged = asking(), subject_of(saying("bread"))
    policies = monitored("bread", "cheese")
    first = await asks.evaluate(judged, policies)

    again = await asks.evaluate(judged, policies)

    assert len(judge.received) == 2
    assert [each.outcome for each in again] == [each.outcome for each in first]
    assert all(each.is_cached for each in again)


async def test_a_failure_is_not_remembered(asking: Asks, judge: ScriptedJudge) -> None:
    asks, judged = asking(), subject_of(saying("bread"))
    judge.fails = lambda _: Fault.ERROR_500
    await asks.evaluate(judged, [BREAD])
    judge.fails = lambda _: None

    (found,) = await asks.evaluate(judged, [BREAD])

    assert found.outcome is EvaluationOutcome.MATCH


async def test_the_score_of_a_skipped_policy_is_not_cached(
    asking: Asks, judge: ScriptedJudge
) -> None:
    """Bread matches before cheese is answered on the last window, the only one that has it."""
    judged = subject_of(saying("bread" + "x" * 20_000, "y" * 20_000 + "cheese"))
    runner = asking(context_tokens=4_000, question_tokens_max=500)
    judge.fails = lambda question: Fault.STALLS if "cheese" in question.content else None
    skipped, _ = await runner.evaluate(judged, [CHEESE, BREAD])
    assert (skipped.outcome, skipped.score is None) == (EvaluationOutcome.SKIPPED, False)
    judge.fails = lambda _: None

    (found,) = await runner.evaluate(judged, [CHEESE])

    assert (found.outcome, found.is_cached) == (EvaluationOutcome.MATCH, False)


async def test_a_remembered_match_is_enough(asking: Asks, judge: ScriptedJudge) -> None:
    asks, judged = asking(), subject_of(saying("bread"))
    await asks.evaluate(judged, [BREAD])

    found = await asks.evaluate(judged, [CHEESE, BREAD])

    assert [each.outcome for each in found] == [EvaluationOutcome.SKIPPED, EvaluationOutcome.MATCH]
    assert len(judge.received) == 1


@pytest.mark.guarantee("T38")
async def test_another_organization_with_the_same_content_is_judged_anew(
    asking: Asks, judge: ScriptedJudge
) -> None:
    asks, content = asking(), saying("bread")
    await asks.evaluate(subject_of(content), [BREAD])

    await asks.evaluate(subject_of(content, OrganizationId(uuid4())), [BREAD])

    assert len(judge.received) == 2
    assert judge.received[0].delimiter != judge.received[1].delimiter


async def test_nothing_to_ask_asks_nothing(asking: Asks, judge: ScriptedJudge) -> None:
    assert await asking().evaluate(subject_of(saying("bread")), []) == ()
    assert judge.received == []
