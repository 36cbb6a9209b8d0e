"""Which question is put next, and what is known so far: all of asking but the waiting.

On every window one question goes ahead, so that the others find the window in the judge's prefix
cache. It is the longest, so that a window which is too long mostly shows it first, and is halved
before the others are asked. Monitoring asks about every window also after a match, since its scores
are counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tollhouse.judging.types import Decision, FailureReason, Outcome, Score, Window
from tollhouse.judging.verdict import decide, passes
from tollhouse.judging.windows import Sheet
from tollhouse.policies.types import AppliedPolicy, Mode


@dataclass(slots=True)
class Standing:
    """What is known of one policy. It is open until an answer, or all answers together, decide.

    `score` is the highest of all answers, or the one that could not decide.
    """

    policy: AppliedPolicy
    windows_left: int
    windows: int = 0
    score: Score | None = None
    has_matched: bool = False
    outcome: Outcome = Outcome.SKIPPED
    reason: FailureReason | None = None

    @property
    def is_decided(self) -> bool:
        """Whether no further answer is needed."""
        refuses = self.has_matched and self.policy.mode is Mode.ENFORCING
        return refuses or not self.windows_left

    @property
    def is_open(self) -> bool:
        """Whether another answer could change anything."""
        return self.outcome is Outcome.SKIPPED

    def decision(self) -> Decision:
        """As it stands now."""
        return Decision(
            policy=self.policy,
            outcome=self.outcome,
            score=self.score,
            reason=self.reason,
            windows=self.windows,
        )


@dataclass(frozen=True, slots=True)
class Job:
    """One policy on one window."""

    standing: Standing
    window: Window
    goes_ahead: bool = False


class Agenda:
    """One per content. Whoever takes a job reports it as answered, failed or passed over."""

    def __init__(
        self, policies: Sequence[AppliedPolicy], sheet: Sheet, windows: Sequence[Window]
    ) -> None:
        self._sheet = sheet
        self._windows = windows
        self._standings = [Standing(policy, len(windows)) for policy in policies]
        self._open = len(self._standings)
        self._is_refused = False

    @property
    def is_over(self) -> bool:
        """Whether all is known that matters: every policy's answer, or one that refuses."""
        return self._is_refused or not self._open

    @property
    def jobs_max(self) -> int:
        """How many can be done at once at most."""
        return len(self._standings) * len(self._windows)

    def first(self) -> list[Job]:
        """What can be asked before anything is answered."""
        return [job for window in self._windows for job in self._lead(window)]

    def answered(self, job: Job, score: Score) -> list[Job]:
        """Note an answer that is sure enough to decide; returns what can be asked now."""
        standing = job.standing
        standing.windows += 1
        standing.windows_left -= 1
        outcome = decide(standing.policy, score)
        assert outcome is not Outcome.FAILED, "an answer that decides nothing is reported as failed"
        standing.has_matched = standing.has_matched or outcome is Outcome.MATCH
        if standing.score is None or _is_higher(score, standing.score):
            standing.score = score
        if standing.is_open and standing.is_decided:
            self._close(standing, Outcome.MATCH if standing.has_matched else Outcome.NO_MATCH)
        return self._after(job)

    def failed(self, job: Job, reason: FailureReason, score: Score | None = None) -> list[Job]:
        """Note that there is no answer; a window that may have been too long is halved first.

        What a match has decided it cannot change.
        """
        standing = job.standing
        if reason is FailureReason.REJECTED and (halves := self._sheet.halves(job.window)):
            return self._split(halves) if job.goes_ahead else _split_for(standing, halves)
        if not standing.is_open:
            return self._after(job)
        standing.windows_left -= 1
        if standing.has_matched:
            if not standing.windows_left:
                self._close(standing, Outcome.MATCH)
        else:
            standing.reason, standing.score = reason, score or standing.score
            self._close(standing, Outcome.FAILED)
        return self._after(job)

    def passed_over(self, job: Job) -> list[Job]:
        """The policy was decided meanwhile; another goes ahead in its place."""
        return self._lead(job.window) if job.goes_ahead else []

    def give_up(self, reason: FailureReason) -> None:
        """Nothing more can be asked."""
        for standing in self._standings:
            if standing.is_open and standing.has_matched:
                self._close(standing, Outcome.MATCH)
            elif standing.is_open:
                standing.reason = reason
                self._close(standing, Outcome.FAILED)

    def decisions(self) -> tuple[Decision, ...]:
        """One for each policy, in the order in which these were given."""
        return tuple(standing.decision() for standing in self._standings)

    def _close(self, standing: Standing, outcome: Outcome) -> None:
        standing.outcome = outcome
        self._open -= 1
        self._is_refused = self._is_refused or not passes(standing.decision())

    def _lead(self, window: Window) -> list[Job]:
        open_ = [standing for standing in self._standings if standing.is_open]
        if not open_:
            return []
        longest = max(open_, key=lambda standing: len(standing.policy.rule.encode()))
        return [Job(longest, window, goes_ahead=True)]

    def _after(self, job: Job) -> list[Job]:
        if not job.goes_ahead:
            return []
        return [
            Job(standing, job.window)
            for standing in self._standings
            if standing.is_open and standing is not job.standing
        ]

    def _split(self, halves: Sequence[Window]) -> list[Job]:
        for standing in self._standings:
            standing.windows_left += len(halves) - 1
        return [job for half in halves for job in self._lead(half)]


def _split_for(standing: Standing, halves: Sequence[Window]) -> list[Job]:
    standing.windows_left += len(halves) - 1
    return [Job(standing, half) for half in halves]


def _is_higher(score: Score, other: Score) -> bool:
    return score.basis_points > other.basis_points
