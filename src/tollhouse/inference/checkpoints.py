"""A held answer, looked at now and then while it grows.

The verdict is over the whole answer, so that looking mostly spares the judge reading all of that at
the end. Only policies that say so (docs/decisions/0013-early-ends.md) are asked about what there
is, and only a match of one of these ends anything: every other outcome is as if nobody had asked.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from tollhouse.base.clock import Clock
from tollhouse.base.tasks import Tasks
from tollhouse.judging.asking import Subject
from tollhouse.judging.court import Court
from tollhouse.judging.errors import (
    JudgeFailed,
    JudgeTokensExhausted,
    PolicyNotEvaluable,
    TooLongToJudge,
)
from tollhouse.judging.gathering import Gathered
from tollhouse.judging.types import ContentOf, Decision, Outcome
from tollhouse.policies.types import AppliedPolicy

CHECKPOINT_BYTES = 65_536
"""Of what is held: some hundred tokens of a stream."""
GROWTH_SHARE = 2
"""An answer is laid out whole for every look, so that looks get rarer as it grows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlyMatch:
    """What was found in a part of an answer. Policies that did not match there are skipped."""

    subject: Subject
    decisions: tuple[Decision, ...]
    began_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """Who is asked. `spent_tokens` is what the judge has already taken for the request."""

    court: Court
    tasks: Tasks
    clock: Clock
    policies: Sequence[AppliedPolicy]
    lay_out: Callable[[ContentOf, int], Awaitable[Subject]]
    spent_tokens: int


class Checkpoints:
    """One per answer that is held back. With a `match` the answer ends where it is."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._early = [policy for policy in bench.policies if policy.ends_answer_early]
        self._early_tokens = 0
        self._read_bytes = 0
        self._reading: asyncio.Task[None] | None = None
        self._is_over = False
        self._patience = asyncio.timeout(None)
        self.match: EarlyMatch | None = None

    @asynccontextmanager
    async def until_match(self) -> AsyncGenerator[None]:
        """Leave the block when it ends, or at once when there is a match: a timeout set by it."""
        try:
            async with self._patience:
                try:
                    yield
                finally:
                    self._stop()
        except TimeoutError:
            if self.match is None:
                raise

    def look(self, gathered: Gathered, size_bytes: int, *, may_end: bool) -> None:
        """Begin to, if enough has come since, and nobody looks any more. Never waits."""
        grown_bytes = size_bytes - self._read_bytes
        is_due = grown_bytes >= max(CHECKPOINT_BYTES, self._read_bytes // GROWTH_SHARE)
        if not is_due or not (self._reading is None or self._reading.done()):
            return
        self._read_bytes = size_bytes
        work = self._look(gathered.so_far(), size_bytes, may_end=may_end)
        self._reading = self._bench.tasks.start("checkpoint", work)

    async def _look(self, content_of: ContentOf, size_bytes: int, *, may_end: bool) -> None:
        # Why it can not be judged is told with the verdict. Without judge tokens nobody looks.
        with suppress(PolicyNotEvaluable, JudgeFailed, JudgeTokensExhausted):
            subject = await self._bench.lay_out(content_of, size_bytes)
            if self._is_over:
                return
            if may_end and self._takes(subject):
                await self._ask(subject)
            else:
                await self._read(subject)

    def _stop(self) -> None:
        """The answer is there, or given up: what a part of it says is of no use any more.

        What the judge is reading already it goes on reading, for the verdict.
        """
        self._is_over = True
        if self._reading is not None and self._early:
            self._reading.cancel()

    def _takes(self, subject: Subject) -> bool:
        """Whether the budget has room for early questions, and for the verdict after them.

        The verdict is not weighed with what they took: they can exceed the budget by what the
        answer grows from here on, and can never be the reason why it is not judged.
        """
        if not self._early:
            return False
        weigh, spent_tokens = self._bench.court.weigh, self._bench.spent_tokens + self._early_tokens
        try:
            verdict_tokens = weigh(subject, self._bench.policies, spent_tokens=spent_tokens)
            taken = weigh(subject, self._early, spent_tokens=spent_tokens + verdict_tokens)
            self._bench.court.rate.take(subject.organization_id, taken, is_watched=True)
        except (TooLongToJudge, JudgeTokensExhausted):
            return False
        self._early_tokens += taken
        return True

    async def _ask(self, subject: Subject) -> None:
        began_seconds = self._bench.clock.monotonic_seconds()
        found = await self._bench.court.examine(subject, self._early)
        matched = {each.policy.id: each for each in found if each.outcome is Outcome.MATCH}
        if matched:
            self.match = EarlyMatch(
                subject=subject,
                decisions=tuple(
                    matched.get(policy.id, Decision(policy=policy, outcome=Outcome.SKIPPED))
                    for policy in self._bench.policies
                ),
                began_seconds=began_seconds,
            )
            self._patience.reschedule(asyncio.get_running_loop().time())

    async def _read(self, subject: Subject) -> None:
        court, policy = self._bench.court, self._bench.policies[0]
        tokens = court.weigh(subject, [policy], spent_tokens=self._bench.spent_tokens)
        court.rate.take(subject.organization_id, tokens, is_watched=True)
        await court.warm(subject, policy)
