"""Checkpoints of a buffered answer: background checks while it is generated.

The verdict is over the complete answer. A checkpoint mostly lets the judge read the answer so far,
so that less is left to read at the end. Policies with `ends_answer_early`
(docs/decisions/0013-early-ends.md) are evaluated on the answer so far, and a match of one of them
ends the answer. Any other outcome of a checkpoint is ignored.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from tollhouse.base.clock import Clock
from tollhouse.base.policies import EvaluationOutcome
from tollhouse.base.tasks import Tasks
from tollhouse.evaluation.content.stream_accumulator import StreamAccumulator
from tollhouse.evaluation.errors import (
    JudgeFailed,
    JudgeTokensExhausted,
    PolicyNotEvaluable,
    TooLongToJudge,
)
from tollhouse.evaluation.evaluator import PolicyEvaluator
from tollhouse.evaluation.judge.question_runner import JudgedContent
from tollhouse.evaluation.types import EvaluationDecision, RenderContent
from tollhouse.policies.types import AppliedPolicy

CHECKPOINT_BYTES = 65_536
"""New bytes of the buffer for a checkpoint: some hundred tokens of a stream."""
GROWTH_SHARE = 2
"""A checkpoint needs growth of one part in so many, because each one renders the whole answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlyMatch:
    """A match on the answer so far. Policies without a match have the outcome skipped."""

    judged: JudgedContent
    decisions: tuple[EvaluationDecision, ...]
    began_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlyCheckContext:
    """What checkpoints need. `spent_tokens` are the judge tokens that the request took so far."""

    evaluator: PolicyEvaluator
    tasks: Tasks
    clock: Clock
    policies: Sequence[AppliedPolicy]
    render: Callable[[RenderContent, int], Awaitable[JudgedContent]]
    spent_tokens: int


class StreamCheckpoints:
    """Checks one buffered answer while it grows. `match` is set if the answer must end."""

    def __init__(self, context: EarlyCheckContext) -> None:
        self._context = context
        self._early = [policy for policy in context.policies if policy.ends_answer_early]
        self._early_tokens = 0
        self._checked_bytes = 0
        self._running: asyncio.Task[None] | None = None
        self._is_over = False
        self._match_timeout = asyncio.timeout(None)
        self.match: EarlyMatch | None = None

    @asynccontextmanager
    async def until_match(self) -> AsyncGenerator[None]:
        """Run the block to its end, or leave it at once when a checkpoint finds a match."""
        try:
            async with self._match_timeout:
                try:
                    yield
                finally:
                    self._stop()
        except TimeoutError:
            if self.match is None:
                raise

    def check_if_due(
        self, accumulator: StreamAccumulator, size_bytes: int, *, may_end: bool
    ) -> None:
        """Start a background check if enough new text arrived and none is running.

        `may_end` says whether the answer can still be ended early.
        """
        grown_bytes = size_bytes - self._checked_bytes
        is_due = grown_bytes >= max(CHECKPOINT_BYTES, self._checked_bytes // GROWTH_SHARE)
        if not is_due or not (self._running is None or self._running.done()):
            return
        self._checked_bytes = size_bytes
        work = self._check(accumulator.snapshot(), size_bytes, may_end=may_end)
        self._running = self._context.tasks.start("checkpoint", work)

    async def _check(
        self, render_content: RenderContent, size_bytes: int, *, may_end: bool
    ) -> None:
        # The verdict raises these again, except that checkpoints alone stop without judge tokens.
        with suppress(PolicyNotEvaluable, JudgeFailed, JudgeTokensExhausted):
            judged = await self._context.render(render_content, size_bytes)
            if self._is_over:
                return
            if may_end and self._acquire_early_tokens(judged):
                await self._evaluate_early(judged)
            else:
                await self._warm(judged)

    def _stop(self) -> None:
        """Stop checking: the answer is complete or abandoned.

        A running `_warm` goes on, because the verdict profits from what the judge has read.
        """
        self._is_over = True
        if self._running is not None and self._early:
            self._running.cancel()

    def _acquire_early_tokens(self, judged: JudgedContent) -> bool:
        """Whether the budget has tokens for the early questions and for the verdict after them.

        The verdict does not count the tokens of early questions, so that these never make an
        answer too long to judge. The budget can be exceeded by what the answer grows meanwhile.
        """
        if not self._early:
            return False
        context, rendered = self._context, judged.rendered
        check, rate = context.evaluator.budget.check_content, context.evaluator.rate
        spent_tokens = context.spent_tokens + self._early_tokens
        try:
            spent_tokens += check(rendered, context.policies, spent_tokens=spent_tokens)
            early_tokens = check(rendered, self._early, spent_tokens=spent_tokens)
            rate.acquire(judged.organization_id, early_tokens, is_monitoring=True)
        except (TooLongToJudge, JudgeTokensExhausted):
            return False
        self._early_tokens += early_tokens
        return True

    async def _evaluate_early(self, judged: JudgedContent) -> None:
        began_seconds = self._context.clock.monotonic_seconds()
        found = await self._context.evaluator.evaluate(judged, self._early)
        matched = {
            each.policy.id: each for each in found if each.outcome is EvaluationOutcome.MATCH
        }
        if matched:
            self.match = EarlyMatch(
                judged=judged,
                decisions=tuple(
                    matched.get(
                        policy.id,
                        EvaluationDecision(policy=policy, outcome=EvaluationOutcome.SKIPPED),
                    )
                    for policy in self._context.policies
                ),
                began_seconds=began_seconds,
            )
            self._match_timeout.reschedule(asyncio.get_running_loop().time())

    async def _warm(self, judged: JudgedContent) -> None:
        evaluator, policy = self._context.evaluator, self._context.policies[0]
        tokens = evaluator.budget.check_content(
            judged.rendered, [policy], spent_tokens=self._context.spent_tokens
        )
        evaluator.rate.acquire(judged.organization_id, tokens, is_monitoring=True)
        await evaluator.warm(judged, policy)
