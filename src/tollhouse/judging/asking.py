"""Many questions on one content: all on one replica, within bounds, and no longer than needed."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from tollhouse.base.ids import OrganizationId
from tollhouse.judging import layout
from tollhouse.judging.agenda import Agenda, Job
from tollhouse.judging.cache import VerdictCache
from tollhouse.judging.errors import JudgeFailed
from tollhouse.judging.port import Judge
from tollhouse.judging.score import matches, score_of
from tollhouse.judging.slots import Slots
from tollhouse.judging.types import (
    Decision,
    FailureReason,
    Outcome,
    Question,
    Score,
    Seal,
)
from tollhouse.judging.verdict import decide, passes
from tollhouse.judging.windows import Sheet
from tollhouse.policies.types import AppliedPolicy

ATTEMPTS_MAX = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """Whose content is judged, laid out and sealed."""

    organization_id: OrganizationId
    sheet: Sheet
    seal: Seal


class Asking:
    """One per worker."""

    def __init__(
        self,
        judge: Judge,
        slots: Slots,
        cache: VerdictCache,
        *,
        request_max: int,
        deadline_seconds: float,
    ) -> None:
        self._judge = judge
        self._slots = slots
        self._cache = cache
        self._request_max = request_max
        self._deadline_seconds = deadline_seconds

    async def examine(
        self, subject: Subject, policies: Sequence[AppliedPolicy]
    ) -> tuple[Decision, ...]:
        """One decision for each policy, in their order.

        Asking ends as soon as an enforcing policy refuses, so enforcing and monitoring policies
        are examined apart.
        """
        known = {
            policy.id: found
            for policy in policies
            if (found := self._remembered(subject, policy)) is not None
        }
        unknown = [policy for policy in policies if policy.id not in known]
        windows = subject.sheet.windows(bytes_max=layout.window_bytes(self._judge.profile))
        agenda = Agenda(unknown, subject.sheet, windows)
        if all(passes(decision) for decision in known.values()):
            await self._ask_all(subject, agenda)
        found = known | {decision.policy.id: decision for decision in agenda.decisions()}
        return tuple(found[policy.id] for policy in policies)

    async def warm(self, subject: Subject, policy: AppliedPolicy) -> None:
        """Let the judge read a content that still grows. What it says of it counts for nothing."""
        windows = subject.sheet.windows(bytes_max=layout.window_bytes(self._judge.profile))
        question = Question(rule=policy.rule, window=windows[-1], seal=subject.seal)
        with suppress(JudgeFailed, TimeoutError):
            async with (
                asyncio.timeout(self._deadline_seconds),
                self._slots.one(subject.organization_id),
            ):
                await self._judge.ask(question)

    def _remembered(self, subject: Subject, policy: AppliedPolicy) -> Decision | None:
        score = self._cache.find(policy, subject.seal.digest, self._judge.identity)
        if score is None:
            return None
        outcome = decide(policy, score)
        return Decision(policy=policy, outcome=outcome, score=score, is_cached=True)

    async def _ask_all(self, subject: Subject, agenda: Agenda) -> None:
        try:
            async with asyncio.timeout(self._deadline_seconds):
                await self._work(subject, agenda)
        except TimeoutError:
            agenda.give_up(FailureReason.TIMED_OUT)
        for decision in agenda.decisions():
            if decision.outcome in {Outcome.MATCH, Outcome.NO_MATCH} and decision.score:
                digest, identity = subject.seal.digest, self._judge.identity
                self._cache.keep(decision.policy, digest, identity, decision.score)

    async def _work(self, subject: Subject, agenda: Agenda) -> None:
        if agenda.is_over:
            return
        jobs: asyncio.Queue[Job] = asyncio.Queue()
        for job in agenda.first():
            jobs.put_nowait(job)
        # Ending the group by an exception would leave a reference cycle that holds the content.
        async with asyncio.TaskGroup() as workers:
            working = [
                workers.create_task(self._take(subject, agenda, jobs))
                for _ in range(min(self._request_max, agenda.jobs_max))
            ]
            await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            for worker in working:
                worker.cancel()

    async def _take(self, subject: Subject, agenda: Agenda, jobs: "asyncio.Queue[Job]") -> None:
        while True:
            job = await jobs.get()
            opened = await self._done(subject, agenda, job)
            if agenda.is_over:
                return
            for next_job in opened:
                jobs.put_nowait(next_job)

    async def _done(self, subject: Subject, agenda: Agenda, job: Job) -> list[Job]:
        async with self._slots.one(subject.organization_id):
            if not job.standing.is_open:
                return agenda.passed_over(job)
            try:
                score = await self._decided(subject, job)
            except JudgeFailed as failure:
                return agenda.failed(job, failure.reason, failure.score)
            return agenda.answered(job, score)

    async def _decided(self, subject: Subject, job: Job) -> Score:
        """An answer that decides. What gave none is asked once more, unless it was refused."""
        policy, undecided = job.standing.policy, None
        question = Question(rule=policy.rule, window=job.window, seal=subject.seal)
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                score = await self._score(question)
            except JudgeFailed as failure:
                if attempt == ATTEMPTS_MAX or failure.reason is FailureReason.REJECTED:
                    raise
                continue
            threshold = policy.match_threshold_basis_points
            if matches(score, threshold_basis_points=threshold) is not None:
                return score
            undecided = score
        raise JudgeFailed(FailureReason.UNDECIDED, undecided)

    async def _score(self, question: Question) -> Score:
        floor = self._judge.profile.coverage_floor_basis_points
        evidence = await self._judge.ask(question)
        return score_of(evidence, coverage_floor_basis_points=floor)
