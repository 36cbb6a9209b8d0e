"""Whatever the order of answers: asking ends, and nothing passes that was not asked about whole."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judge.cases import policy, saying, scored
from tollhouse.base.ids import PolicyId
from tollhouse.base.policies import EvaluationOutcome, Mode
from tollhouse.evaluation.content.windows import RenderedContent
from tollhouse.evaluation.judge.question_scheduler import QuestionScheduler, ScheduledQuestion
from tollhouse.evaluation.types import EvaluationDecision, FailureReason, Score
from tollhouse.policies.types import AppliedPolicy

TEXT = "bread " * 1_000
YES, NO = scored(9_000), scored(1_000)
Answer = st.sampled_from(["no", "no", "no", "yes", "failed", "rejected"])


@dataclass
class Walk:
    """A judge that answers in an order and a way that somebody else decides."""

    scheduler: QuestionScheduler
    waiting: list[ScheduledQuestion] = field(default_factory=list[ScheduledQuestion])
    answered: dict[PolicyId, list[ScheduledQuestion]] = field(
        default_factory=dict[PolicyId, list[ScheduledQuestion]]
    )
    begun: list[ScheduledQuestion] = field(default_factory=list[ScheduledQuestion])

    def step(self, job: ScheduledQuestion, answer: str) -> None:
        self.waiting.remove(job)
        if not job.progress.is_open:
            self.waiting += self.scheduler.skipped(job)
            return
        self.begun.append(job)
        match answer:
            case "yes" | "no":
                self.answered.setdefault(job.progress.policy.id, []).append(job)
                self.waiting += self.scheduler.answered(job, YES if answer == "yes" else NO)
            case "rejected":
                self.waiting += self.scheduler.failed(job, FailureReason.REJECTED)
            case _:
                self.waiting += self.scheduler.failed(job, FailureReason.UNREACHABLE)


def walk_of(
    policies: list[AppliedPolicy], *, bytes_max: int = 2_048
) -> tuple[Walk, RenderedContent]:
    rendered = RenderedContent(saying(TEXT))
    scheduler = QuestionScheduler(policies, rendered, rendered.windows(bytes_max=bytes_max))
    return Walk(scheduler, scheduler.initial_questions()), rendered


POLICIES = st.lists(
    st.builds(policy, st.sampled_from(["a?", "bb?", "ccc?"]), mode=st.sampled_from(Mode)),
    min_size=1,
    max_size=5,
)


@given(st.data(), POLICIES)
def test_every_walk_ends_and_only_what_was_asked_whole_passes(
    data: st.DataObject, policies: list[AppliedPolicy]
) -> None:
    walk, rendered = walk_of(policies)

    while not walk.scheduler.is_finished:
        assert walk.waiting, "asking stands still"
        walk.step(data.draw(st.sampled_from(walk.waiting)), data.draw(Answer))

    decisions = walk.scheduler.decisions()
    assert [decision.policy for decision in decisions] == policies
    is_refused = any(_refuses(decision) for decision in decisions)
    for decision in decisions:
        assert decision.outcome is not EvaluationOutcome.SKIPPED or is_refused
        if decision.outcome is EvaluationOutcome.NO_MATCH:
            assert _covered(walk.answered[decision.policy.id]) == rendered.characters
        if decision.outcome is EvaluationOutcome.MATCH:
            assert decision.score == YES
    for ahead in walk.begun:
        if ahead.is_lead:
            of_window = [job for job in walk.begun if job.window == ahead.window]
            assert of_window[0].is_lead


def _refuses(decision: EvaluationDecision) -> bool:
    return (
        decision.policy.mode is Mode.ENFORCING
        and decision.outcome in {EvaluationOutcome.MATCH, EvaluationOutcome.FAILED}
    )  # fmt: skip


def _covered(jobs: list[ScheduledQuestion]) -> int:
    """How far the windows reach without a gap."""
    reach = 0
    for job in sorted(jobs, key=lambda job: job.window.start):
        if job.window.start <= reach:
            reach = max(reach, job.window.end)
    return reach


def test_one_question_is_lead_on_every_window() -> None:
    policies = [policy(f"{number}?") for number in range(10)]
    walk, _ = walk_of(policies, bytes_max=100_000)

    assert len(walk.waiting) == 1
    walk.step(walk.waiting[0], "no")

    assert len(walk.waiting) == 9
    assert {job.progress.policy.id for job in walk.waiting} < {each.id for each in policies}


def test_the_longest_question_is_lead() -> None:
    walk, _ = walk_of([policy("a?"), policy("aaa?"), policy("aa?")])

    assert {job.progress.policy.rule for job in walk.waiting} == {"aaa?"}


def test_a_window_that_is_too_long_is_halved_before_others_are_asked() -> None:
    walk, _ = walk_of([policy("a?"), policy("b?")], bytes_max=100_000)

    walk.step(walk.waiting[0], "rejected")

    assert len(walk.waiting) > 1
    assert all(job.is_lead for job in walk.waiting)
    while not walk.scheduler.is_finished:
        walk.step(walk.waiting[0], "no")
    assert {each.outcome for each in walk.scheduler.decisions()} == {EvaluationOutcome.NO_MATCH}


def test_what_cannot_be_halved_any_more_failed() -> None:
    walk, _ = walk_of([policy("a?", mode=Mode.MONITORING)])

    while not walk.scheduler.is_finished:
        walk.step(walk.waiting[0], "rejected")

    (decision,) = walk.scheduler.decisions()
    assert (decision.outcome, decision.reason) == (
        EvaluationOutcome.FAILED,
        FailureReason.REJECTED,
    )


@pytest.mark.parametrize("answer", ["yes", "failed"])
def test_an_enforcing_refusal_ends_it(answer: str) -> None:
    walk, _ = walk_of([policy("long one?"), policy("b?")], bytes_max=100_000)

    walk.step(walk.waiting[0], answer)

    assert walk.scheduler.is_finished
    assert walk.scheduler.decisions()[1].outcome is EvaluationOutcome.SKIPPED


@pytest.mark.parametrize("answer", ["yes", "failed"])
def test_a_monitoring_policy_ends_nothing(answer: str) -> None:
    walk, _ = walk_of(
        [policy("long one?", mode=Mode.MONITORING), policy("b?", mode=Mode.MONITORING)],
        bytes_max=100_000,
    )

    walk.step(walk.waiting[0], answer)

    assert not walk.scheduler.is_finished


def test_a_match_in_one_window_is_enough_to_refuse() -> None:
    walk, _ = walk_of([policy("a?")])

    walk.step(walk.waiting[-1], "yes")

    assert walk.scheduler.is_finished
    assert walk.scheduler.decisions()[0].outcome is EvaluationOutcome.MATCH


@pytest.mark.parametrize("last", [scored(9_000), FailureReason.TIMED_OUT])
def test_monitoring_goes_on_after_a_match_for_the_highest_score(
    last: Score | FailureReason,
) -> None:
    """Else the score would depend on the threshold that it is to find; a match stays one."""
    walk, _ = walk_of([policy("a?", mode=Mode.MONITORING)])
    *others, final = list(walk.waiting)

    for job in others:
        walk.scheduler.answered(job, scored(6_000))
    assert not walk.scheduler.is_finished
    if isinstance(last, Score):
        walk.scheduler.answered(final, last)
    else:
        walk.scheduler.failed(final, last)

    (decision,) = walk.scheduler.decisions()
    assert walk.scheduler.is_finished
    assert decision.outcome is EvaluationOutcome.MATCH
    assert decision.score == (last if isinstance(last, Score) else scored(6_000))


def test_monitoring_that_has_matched_is_not_undone_by_giving_up() -> None:
    walk, _ = walk_of([policy("a?", mode=Mode.MONITORING)])
    walk.scheduler.answered(walk.waiting[0], scored(6_000))

    walk.scheduler.give_up(FailureReason.TIMED_OUT)

    assert walk.scheduler.decisions()[0].outcome is EvaluationOutcome.MATCH


def test_an_answer_that_decides_nothing_is_a_failure_with_a_score() -> None:
    walk, _ = walk_of([policy("a?")])

    walk.scheduler.failed(walk.waiting[0], FailureReason.UNDECIDED, scored(4_900))

    (decision,) = walk.scheduler.decisions()
    assert (decision.outcome, decision.reason) == (
        EvaluationOutcome.FAILED,
        FailureReason.UNDECIDED,
    )
    assert decision.score == scored(4_900)


def test_the_question_sent_ahead_takes_most_bytes() -> None:
    wide = policy("\u6a4b\u8cb3" * 20 + "?")
    walk, _ = walk_of([policy("a" * 100 + "?"), wide])

    assert {job.progress.policy.id for job in walk.waiting} == {wide.id}


def test_a_window_too_long_for_one_question_alone_is_halved_for_it() -> None:
    walk, _ = walk_of([policy("long one?"), policy("b?")], bytes_max=100_000)
    (ahead,) = list(walk.waiting)
    (other,) = walk.scheduler.answered(ahead, scored(100))

    halves = walk.scheduler.failed(other, FailureReason.REJECTED)

    assert len(halves) > 1
    assert {job.progress.policy.id for job in halves} == {other.progress.policy.id}
    for job in halves:
        assert not walk.scheduler.is_finished
        walk.scheduler.answered(job, scored(100))
    assert walk.scheduler.is_finished


def test_the_score_is_the_highest_of_all_windows() -> None:
    walk, _ = walk_of([policy("a?")])
    scores = [scored(100 * number) for number, _ in enumerate(walk.waiting, 1)]

    for job, score in zip(list(walk.waiting), reversed(scores), strict=True):
        walk.scheduler.answered(job, score)

    (decision,) = walk.scheduler.decisions()
    assert decision.score == scores[-1]
    assert decision.windows == len(scores)


def test_whoever_gives_up_leaves_nothing_open() -> None:
    walk, _ = walk_of([policy("long one?", mode=Mode.MONITORING), policy("b?")])
    walk.step(walk.waiting[0], "yes")

    walk.scheduler.give_up(FailureReason.TIMED_OUT)

    assert walk.scheduler.is_finished
    found = [(each.outcome, each.reason) for each in walk.scheduler.decisions()]
    assert found == [
        (EvaluationOutcome.MATCH, None),
        (EvaluationOutcome.FAILED, FailureReason.TIMED_OUT),
    ]
