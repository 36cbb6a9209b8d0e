"""The question scheduler: which question is asked next, and what is known so far. Does no I/O.

On each window one question, the lead, is asked before the others, which then find the window in
the judge's prefix cache. It is the one with the longest rule, so that the judge rejects a window
that is too long at the lead, and it is halved before the others are asked. Monitoring policies are
asked about every window even after a match, because their scores are counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tollhouse.base.policies import EvaluationOutcome, Mode
from tollhouse.evaluation.content.windows import RenderedContent
from tollhouse.evaluation.judge.verdict import decide, passes
from tollhouse.evaluation.types import (
    EvaluationDecision,
    FailureReason,
    Score,
    Window,
)
from tollhouse.policies.types import AppliedPolicy


@dataclass(slots=True)
class PolicyProgress:
    """What is known of one policy. It is open, with the outcome SKIPPED, until it is decided.

    `score` is the highest of all answers, or the one that could not decide.
    """

    policy: AppliedPolicy
    windows_left: int
    windows: int = 0
    score: Score | None = None
    has_matched: bool = False
    outcome: EvaluationOutcome = EvaluationOutcome.SKIPPED
    reason: FailureReason | None = None

    @property
    def is_decided(self) -> bool:
        """Whether the answers so far decide the policy."""
        refuses = self.has_matched and self.policy.mode is Mode.ENFORCING
        return refuses or not self.windows_left

    @property
    def is_open(self) -> bool:
        """Whether another answer could change the outcome."""
        return self.outcome is EvaluationOutcome.SKIPPED

    def decision(self) -> EvaluationDecision:
        """Return the decision by the answers so far."""
        return EvaluationDecision(
            policy=self.policy,
            outcome=self.outcome,
            score=self.score,
            reason=self.reason,
            windows=self.windows,
        )


@dataclass(frozen=True, slots=True)
class ScheduledQuestion:
    """One policy on one window. The lead of a window is asked before its other questions."""

    progress: PolicyProgress
    window: Window
    is_lead: bool = False


class QuestionScheduler:
    """Schedules the questions about one content.

    Each question that it returns is reported by `answered`, `failed` or `skipped`.
    """

    def __init__(
        self,
        policies: Sequence[AppliedPolicy],
        rendered: RenderedContent,
        windows: Sequence[Window],
    ) -> None:
        self._rendered = rendered
        self._windows = windows
        self._progress = [PolicyProgress(policy, len(windows)) for policy in policies]
        self._open = len(self._progress)
        self._is_refused = False

    @property
    def is_finished(self) -> bool:
        """Whether every policy is decided, or one of them refuses."""
        return self._is_refused or not self._open

    @property
    def questions_max(self) -> int:
        """The most questions that can be asked at once."""
        return len(self._progress) * len(self._windows)

    def initial_questions(self) -> list[ScheduledQuestion]:
        """Return the questions that do not wait for others: the leads of all windows."""
        return [question for window in self._windows for question in self._lead(window)]

    def answered(self, question: ScheduledQuestion, score: Score) -> list[ScheduledQuestion]:
        """Record an answer that decides its window, and return the questions that follow."""
        progress = question.progress
        progress.windows += 1
        progress.windows_left -= 1
        outcome = decide(progress.policy, score)
        assert outcome is not EvaluationOutcome.FAILED, (
            "an answer that does not decide is reported by `failed`"
        )
        progress.has_matched = progress.has_matched or outcome is EvaluationOutcome.MATCH
        if progress.score is None or _is_higher(score, progress.score):
            progress.score = score
        if progress.is_open and progress.is_decided:
            self._close(
                progress,
                EvaluationOutcome.MATCH if progress.has_matched else EvaluationOutcome.NO_MATCH,
            )
        return self._after(question)

    def failed(
        self, question: ScheduledQuestion, reason: FailureReason, score: Score | None = None
    ) -> list[ScheduledQuestion]:
        """Record that there is no answer, and return the questions that follow.

        A rejected window is halved, because it may be too long. A match is not changed.
        """
        progress = question.progress
        if reason is FailureReason.REJECTED and (halves := self._rendered.halves(question.window)):
            return self._split(halves) if question.is_lead else _split_for(progress, halves)
        if not progress.is_open:
            return self._after(question)
        progress.windows_left -= 1
        if progress.has_matched:
            if not progress.windows_left:
                self._close(progress, EvaluationOutcome.MATCH)
        else:
            progress.reason, progress.score = reason, score or progress.score
            self._close(progress, EvaluationOutcome.FAILED)
        return self._after(question)

    def skipped(self, question: ScheduledQuestion) -> list[ScheduledQuestion]:
        """Skip a question whose policy is already decided, and return the lead in its place."""
        return self._lead(question.window) if question.is_lead else []

    def give_up(self, reason: FailureReason) -> None:
        """Record the reason for every policy that is still open: no more questions are asked."""
        for progress in self._progress:
            if progress.is_open and progress.has_matched:
                self._close(progress, EvaluationOutcome.MATCH)
            elif progress.is_open:
                progress.reason = reason
                self._close(progress, EvaluationOutcome.FAILED)

    def decisions(self) -> tuple[EvaluationDecision, ...]:
        """Return one decision per policy, in their order."""
        return tuple(progress.decision() for progress in self._progress)

    def _close(self, progress: PolicyProgress, outcome: EvaluationOutcome) -> None:
        progress.outcome = outcome
        self._open -= 1
        self._is_refused = self._is_refused or not passes(progress.decision())

    def _lead(self, window: Window) -> list[ScheduledQuestion]:
        open_ = [progress for progress in self._progress if progress.is_open]
        if not open_:
            return []
        longest = max(open_, key=lambda progress: len(progress.policy.rule.encode()))
        return [ScheduledQuestion(longest, window, is_lead=True)]

    def _after(self, question: ScheduledQuestion) -> list[ScheduledQuestion]:
        if not question.is_lead:
            return []
        return [
            ScheduledQuestion(progress, question.window)
            for progress in self._progress
            if progress.is_open and progress is not question.progress
        ]

    def _split(self, halves: Sequence[Window]) -> list[ScheduledQuestion]:
        for progress in self._progress:
            progress.windows_left += len(halves) - 1
        return [question for half in halves for question in self._lead(half)]


def _split_for(progress: PolicyProgress, halves: Sequence[Window]) -> list[ScheduledQuestion]:
    progress.windows_left += len(halves) - 1
    return [ScheduledQuestion(progress, half) for half in halves]


def _is_higher(score: Score, other: Score) -> bool:
    return score.basis_points > other.basis_points
