"""The question runner: asks the questions about one content until its verdict is certain."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from tollhouse.base.ids import OrganizationId
from tollhouse.base.policies import EvaluationOutcome
from tollhouse.evaluation.content.windows import RenderedContent
from tollhouse.evaluation.errors import JudgeFailed
from tollhouse.evaluation.judge import prompts
from tollhouse.evaluation.judge.client import JudgeClient
from tollhouse.evaluation.judge.question_scheduler import QuestionScheduler, ScheduledQuestion
from tollhouse.evaluation.judge.quotas import FairSemaphore
from tollhouse.evaluation.judge.score import matches, score_answer
from tollhouse.evaluation.judge.verdict import decide, passes
from tollhouse.evaluation.judge.verdict_cache import VerdictCache
from tollhouse.evaluation.types import (
    EvaluationDecision,
    FailureReason,
    JudgeQuestion,
    JudgeRequestKeys,
    Score,
)
from tollhouse.policies.types import AppliedPolicy

ATTEMPTS_MAX = 2
_CACHED_OUTCOMES = frozenset({EvaluationOutcome.MATCH, EvaluationOutcome.NO_MATCH})


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedContent:
    """A rendered content with its organization and keys."""

    organization_id: OrganizationId
    rendered: RenderedContent
    request_keys: JudgeRequestKeys


class QuestionRunner:
    """Asks questions in slots that all contents of a worker share, and caches verdicts."""

    def __init__(
        self,
        judge: JudgeClient,
        slots: FairSemaphore,
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

    async def evaluate(
        self, judged: JudgedContent, policies: Sequence[AppliedPolicy]
    ) -> tuple[EvaluationDecision, ...]:
        """Return one decision per policy, in their order.

        Stops as soon as an enforcing policy refuses. Callers evaluate monitoring policies
        separately, since these would be skipped.
        """
        known = {
            policy.id: found
            for policy in policies
            if (found := self._cached(judged, policy)) is not None
        }
        unknown = [policy for policy in policies if policy.id not in known]
        windows = judged.rendered.windows(bytes_max=prompts.window_bytes(self._judge.profile))
        scheduler = QuestionScheduler(unknown, judged.rendered, windows)
        if all(passes(decision) for decision in known.values()):
            await self._ask_all(judged, scheduler)
        found = known | {decision.policy.id: decision for decision in scheduler.decisions()}
        return tuple(found[policy.id] for policy in policies)

    async def warm(self, judged: JudgedContent, policy: AppliedPolicy) -> None:
        """Let the judge read a growing content into its prefix cache, and ignore its answer."""
        windows = judged.rendered.windows(bytes_max=prompts.window_bytes(self._judge.profile))
        question = JudgeQuestion(
            rule=policy.rule, window=windows[-1], request_keys=judged.request_keys
        )
        with suppress(JudgeFailed, TimeoutError):
            async with (
                asyncio.timeout(self._deadline_seconds),
                self._slots.slot(judged.organization_id),
            ):
                await self._judge.ask(question)

    def _cached(self, judged: JudgedContent, policy: AppliedPolicy) -> EvaluationDecision | None:
        score = self._cache.find(policy, judged.request_keys.digest, self._judge.identity)
        if score is None:
            return None
        outcome = decide(policy, score)
        return EvaluationDecision(policy=policy, outcome=outcome, score=score, is_cached=True)

    async def _ask_all(self, judged: JudgedContent, scheduler: QuestionScheduler) -> None:
        try:
            async with asyncio.timeout(self._deadline_seconds):
                await self._run_workers(judged, scheduler)
        except TimeoutError:
            scheduler.give_up(FailureReason.TIMED_OUT)
        for decision in scheduler.decisions():
            # A skipped policy may have a score of some windows, which says nothing of the others.
            if decision.score and decision.outcome in _CACHED_OUTCOMES:
                digest, identity = judged.request_keys.digest, self._judge.identity
                self._cache.keep(decision.policy, digest, identity, decision.score)

    async def _run_workers(self, judged: JudgedContent, scheduler: QuestionScheduler) -> None:
        if scheduler.is_finished:
            return
        queue: asyncio.Queue[ScheduledQuestion] = asyncio.Queue()
        for question in scheduler.initial_questions():
            queue.put_nowait(question)
        # To end the group by an exception would leave a reference cycle that keeps the content.
        async with asyncio.TaskGroup() as workers:
            working = [
                workers.create_task(self._run_worker(judged, scheduler, queue))
                for _ in range(min(self._request_max, scheduler.questions_max))
            ]
            await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            for worker in working:
                worker.cancel()

    async def _run_worker(
        self,
        judged: JudgedContent,
        scheduler: QuestionScheduler,
        queue: "asyncio.Queue[ScheduledQuestion]",
    ) -> None:
        while True:
            question = await queue.get()
            following = await self._run_question(judged, scheduler, question)
            if scheduler.is_finished:
                return
            for next_question in following:
                queue.put_nowait(next_question)

    async def _run_question(
        self, judged: JudgedContent, scheduler: QuestionScheduler, question: ScheduledQuestion
    ) -> list[ScheduledQuestion]:
        async with self._slots.slot(judged.organization_id):
            if not question.progress.is_open:
                return scheduler.skipped(question)
            try:
                score = await self._decisive_score(judged, question)
            except JudgeFailed as failure:
                return scheduler.failed(question, failure.reason, failure.score)
            return scheduler.answered(question, score)

    async def _decisive_score(self, judged: JudgedContent, scheduled: ScheduledQuestion) -> Score:
        """Return a score that decides the window, or raise `JudgeFailed`.

        Asks a second time after a failure or an undecided score, unless the judge rejected it.
        """
        policy, undecided = scheduled.progress.policy, None
        question = JudgeQuestion(
            rule=policy.rule, window=scheduled.window, request_keys=judged.request_keys
        )
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

    async def _score(self, question: JudgeQuestion) -> Score:
        floor = self._judge.profile.coverage_floor_basis_points
        answer = await self._judge.ask(question)
        return score_answer(answer, coverage_floor_basis_points=floor)
