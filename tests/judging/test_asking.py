"""Many questions over the wire: order, bounds, early ends, retries, and what is remembered."""

import asyncio
from collections import Counter
from uuid import uuid4

import pytest

from tests.judging.cases import asks_for, saying, subject_of
from tests.judging.conftest import Asks
from tests.support.gateway import PATIENCE_SECONDS
from tests.support.judge import Fault, Heard, ScriptedJudge
from tollhouse.base.ids import OrganizationId
from tollhouse.judging.types import FailureReason, Outcome
from tollhouse.judging.verdict import refusal
from tollhouse.policies.types import AppliedPolicy, Direction, Mode

BREAD, CHEESE = asks_for("bread"), asks_for("cheese")


async def a_moment() -> None:
    """Time enough for whatever is not bound to go ahead."""
    for _ in range(200):
        await asyncio.sleep(0)


def monitored(*words: str) -> list[AppliedPolicy]:
    return [asks_for(word, mode=Mode.MONITORING) for word in words]


async def test_every_policy_gets_its_answer(asking: Asks) -> None:
    policies = monitored("bread", "cheese", "wine")

    found = await asking().examine(subject_of(saying("bread and wine")), policies)

    assert [each.outcome for each in found] == [Outcome.MATCH, Outcome.NO_MATCH, Outcome.MATCH]
    assert [each.policy for each in found] == policies
    assert all(each.score is not None and each.windows == 1 for each in found)


async def test_one_question_is_ahead_of_all_others(asking: Asks, judge: ScriptedJudge) -> None:
    """The others find the content in the judge's prefix cache."""
    judge.holds_answers = True
    policies = monitored(*(f"word {number}" for number in range(20)))
    task = asyncio.ensure_future(asking().examine(subject_of(saying("bread")), policies))

    await judge.has_heard(1)
    await a_moment()
    assert judge.at_once == 1
    judge.let(1)
    await judge.has_heard(1 + 8)
    judge.let_all()

    assert len(await task) == 20


async def test_questions_of_one_request_are_bounded(asking: Asks, judge: ScriptedJudge) -> None:
    judge.holds_answers = True
    policies = monitored(*(f"word {number}" for number in range(60)))
    asks = asking(request_max=3)
    task = asyncio.ensure_future(asks.examine(subject_of(saying("bread")), policies))

    await judge.has_heard(1)
    judge.let(1)
    await judge.has_heard(1 + 3)
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
    tasks = [asyncio.ensure_future(asks.examine(each, [BREAD])) for each in subjects]

    await judge.has_heard(4)
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
        asyncio.ensure_future(asks.examine(subject_of(saying(str(number))), [BREAD]))
        for number in range(10)
    ]
    await judge.has_heard(2)

    other = subject_of(saying("another"), OrganizationId(uuid4()))
    task = asyncio.ensure_future(asks.examine(other, [CHEESE]))
    await judge.has_heard(3)

    assert judge.heard[-1].rule == CHEESE.rule
    judge.let_all()
    await asyncio.gather(*busy, task)


async def test_asking_ends_with_an_enforcing_match(asking: Asks, judge: ScriptedJudge) -> None:
    policies = [asks_for("a very long word: bread"), *(asks_for(str(n)) for n in range(50))]
    judge.answers = lambda heard: 0.9 if "bread" in heard.rule else 0.1

    found = await asking().examine(subject_of(saying("bread")), policies)

    assert len(judge.heard) == 1
    assert found[0].outcome is Outcome.MATCH
    assert {each.outcome for each in found[1:]} == {Outcome.SKIPPED}


async def test_a_match_calls_back_whoever_still_waits(asking: Asks, judge: ScriptedJudge) -> None:
    """A judge that stalls on one question cannot keep another's match from being told."""
    policies = [asks_for("the longest goes ahead"), CHEESE, BREAD]
    judge.fails = lambda heard: Fault.STALLS if "cheese" in heard.rule else None

    async with asyncio.timeout(PATIENCE_SECONDS):
        found = await asking().examine(subject_of(saying("bread")), policies)

    assert found[2].outcome is Outcome.MATCH
    assert found[1].outcome is Outcome.SKIPPED


async def test_content_longer_than_a_window_is_judged_to_its_end(
    asking: Asks, judge: ScriptedJudge
) -> None:
    """Whoever clips never sees the newest turn."""
    content = saying("x" * 50_000, "y" * 20_000 + "bread")
    asks = asking(context_tokens=4_000, question_tokens_max=500)

    (found,) = await asks.examine(subject_of(content), [BREAD])

    assert found.outcome is Outcome.MATCH
    assert max(len(heard.prompt) for heard in judge.heard) < 4_000 * 3


async def test_a_long_content_that_does_not_match_was_seen_whole(
    asking: Asks, judge: ScriptedJudge
) -> None:
    texts = [" ".join(map(str, range(9_000))), " ".join(map(str, range(9_000, 12_000)))]
    asks = asking(context_tokens=4_000, question_tokens_max=500)

    (found,) = await asks.examine(subject_of(saying(*texts)), [BREAD])

    assert found.outcome is Outcome.NO_MATCH
    assert found.windows == len(judge.heard)
    whole = "".join(texts)
    reach = 0
    for heard in sorted(judge.heard, key=lambda heard: whole.index(heard.said)):
        assert whole.index(heard.said) <= reach
        reach = whole.index(heard.said) + len(heard.said)
    assert reach == len(whole)


async def test_an_estimate_that_was_too_high_costs_one_question(
    asking: Asks, judge: ScriptedJudge
) -> None:
    judge.prompt_characters_max = 8_000
    policies = monitored("bread", "cheese", "wine", "the longest goes ahead")

    found = await asking().examine(subject_of(saying("x" * 20_000 + "wine")), policies)

    outcomes = [each.outcome for each in found]
    assert outcomes == [Outcome.NO_MATCH, Outcome.NO_MATCH, Outcome.MATCH, Outcome.NO_MATCH]
    refused = [heard for heard in judge.heard if len(heard.prompt) > 8_000]
    assert {heard.rule for heard in refused} == {policies[-1].rule}


class FailsOnce:
    """The first time that a question is heard, it fails."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._heard: Counter[str] = Counter()

    def __call__(self, heard: Heard) -> Fault | None:
        self._heard[heard.rule] += 1
        return self._fault if self._heard[heard.rule] == 1 else None


RETRIED = [fault for fault in Fault if fault not in {Fault.STALLS, Fault.REFUSES_400}]


@pytest.mark.parametrize("fault", RETRIED)
async def test_what_gave_no_answer_is_asked_once_more(
    asking: Asks, judge: ScriptedJudge, fault: Fault
) -> None:
    judge.fails = FailsOnce(fault)

    found = await asking().examine(subject_of(saying("bread")), [CHEESE])

    assert found[0].outcome is Outcome.NO_MATCH


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.STALLS])
async def test_a_judge_that_goes_on_failing_is_never_a_no(
    asking: Asks, judge: ScriptedJudge, fault: Fault
) -> None:
    judge.fails = lambda _: fault

    found = await asking().examine(subject_of(saying("nothing")), [BREAD])

    assert found[0].outcome is Outcome.FAILED
    assert found[0].reason is not None
    assert refusal(found, Direction.REQUEST) is not None
    # The port itself asks up to three times where a connection broke off.
    assert len(judge.heard) <= 2 * 3


async def test_a_threshold_within_the_bounds_is_a_failure(
    asking: Asks, judge: ScriptedJudge
) -> None:
    judge.fails = lambda _: Fault.UNDECIDED

    sure, unsure = await asking().examine(
        subject_of(saying("nothing")),
        [
            asks_for("cheese or so", mode=Mode.MONITORING, threshold_basis_points=9_999),
            asks_for("bread", mode=Mode.MONITORING, threshold_basis_points=1_000),
        ],
    )

    assert sure.outcome is Outcome.NO_MATCH
    assert (unsure.outcome, unsure.reason) == (Outcome.FAILED, FailureReason.UNDECIDED)


async def test_a_judge_that_stalls_is_waited_for_no_longer_than_the_deadline(
    asking: Asks, judge: ScriptedJudge
) -> None:
    judge.fails = lambda heard: Fault.STALLS if "cheese" in heard.rule else None
    policies = monitored("the longest goes ahead", "bread", "cheese")

    found = await asking(deadline_seconds=1.0).examine(subject_of(saying("bread")), policies)

    assert found[1].outcome is Outcome.MATCH
    assert (found[2].outcome, found[2].reason) == (Outcome.FAILED, FailureReason.TIMED_OUT)


async def test_a_caller_who_leaves_takes_the_questions_along(
    asking: Asks, judge: ScriptedJudge
) -> None:
    judge.holds_answers = True
    asks = asking(worker_max=1)
    task = asyncio.ensure_future(asks.examine(subject_of(saying("bread")), [BREAD]))
    await judge.has_heard(1)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    judge.let_all()
    (found,) = await asks.examine(subject_of(saying("bread")), [BREAD])
    assert found.outcome is Outcome.MATCH


async def test_the_same_content_is_not_judged_twice(asking: Asks, judge: ScriptedJudge) -> None:
    asks, subject = asking(), subject_of(saying("bread"))
    policies = monitored("bread", "cheese")
    first = await asks.examine(subject, policies)

    again = await asks.examine(subject, policies)

    assert len(judge.heard) == 2
    assert [each.outcome for each in again] == [each.outcome for each in first]
    assert all(each.is_cached for each in again)


async def test_a_failure_is_not_remembered(asking: Asks, judge: ScriptedJudge) -> None:
    asks, subject = asking(), subject_of(saying("bread"))
    judge.fails = lambda _: Fault.ERROR_500
    await asks.examine(subject, [BREAD])
    judge.fails = lambda _: None

    (found,) = await asks.examine(subject, [BREAD])

    assert found.outcome is Outcome.MATCH


async def test_a_remembered_match_is_enough(asking: Asks, judge: ScriptedJudge) -> None:
    asks, subject = asking(), subject_of(saying("bread"))
    await asks.examine(subject, [BREAD])

    found = await asks.examine(subject, [CHEESE, BREAD])

    assert [each.outcome for each in found] == [Outcome.SKIPPED, Outcome.MATCH]
    assert len(judge.heard) == 1


async def test_another_organization_with_the_same_content_is_judged_anew(
    asking: Asks, judge: ScriptedJudge
) -> None:
    asks, content = asking(), saying("bread")
    await asks.examine(subject_of(content), [BREAD])

    await asks.examine(subject_of(content, OrganizationId(uuid4())), [BREAD])

    assert len(judge.heard) == 2
    assert judge.heard[0].fence != judge.heard[1].fence


async def test_nothing_to_ask_asks_nothing(asking: Asks, judge: ScriptedJudge) -> None:
    assert await asking().examine(subject_of(saying("bread")), []) == ()
    assert judge.heard == []
