"""One request before its policies: what is asked about it, what came of that, and who is told."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from tollhouse.base.errors import GatewayError, without_frames
from tollhouse.base.quotas import Quota
from tollhouse.inference import examinations
from tollhouse.inference.allowance import Allowance
from tollhouse.inference.checkpoints import Bench, Checkpoints, EarlyMatch
from tollhouse.inference.courtroom import Applied, Courtroom, Matter
from tollhouse.inference.errors import AnswerNotEvaluable, AnswerTooLongToJudge
from tollhouse.judging import content as contents
from tollhouse.judging.asking import Subject
from tollhouse.judging.budget import applying
from tollhouse.judging.court import Court
from tollhouse.judging.errors import (
    JudgeFailed,
    JudgeTokensExhausted,
    NotEvaluable,
    PolicyEvaluatorUnavailable,
    PolicyNotEvaluable,
    SelectionTooLarge,
    TooLongToJudge,
    TooManyEvaluations,
)
from tollhouse.judging.types import (
    Content,
    ContentOf,
    Decision,
    FailureReason,
    JudgedDirection,
)
from tollhouse.judging.verdict import refusal, unanswered
from tollhouse.observability import bound_metrics, metrics
from tollhouse.observability.metrics import DecisionLoss
from tollhouse.policies.types import AppliedPolicy, Direction, Mode

Unjudged = PolicyNotEvaluable | JudgeFailed
"""Why a content was not even asked about."""


class Hearing:
    """One per request to which policies apply."""

    def __init__(self, courtroom: Courtroom, matter: Matter, applied: Applied) -> None:
        self._courtroom = courtroom
        self._matter = matter
        self._applied = applied
        self._subject: Subject | None = None
        self._spent_tokens = 0
        self._used_tokens = 0

    @property
    def guards_request(self) -> bool:
        """Whether no backend may see the request in any form before it is judged."""
        return bool(self._applied.of(Direction.REQUEST, Mode.ENFORCING))

    @property
    def holds_answer(self) -> bool:
        """Whether nothing of the answer may leave before it is judged."""
        return bool(self._applied.of(Direction.RESPONSE, Mode.ENFORCING))

    @property
    def watches_answer(self) -> bool:
        """Whether the answer is looked at afterwards."""
        return bool(self._applied.of(Direction.RESPONSE, Mode.MONITORING))

    @property
    def longest_seconds(self) -> float:
        """By how long judging can lengthen a request at most: two contents, one after the other."""
        court = self._courtroom.court
        return 0.0 if court is None else 2 * court.longest_seconds

    def allowance(self) -> Allowance:
        """What the answer may hold back."""
        return self._courtroom.held_bytes.of(self._matter.customer.organization_id)

    async def weigh(self) -> None:
        """Refuse a selection that the judge's budget does not allow; costs nothing without one.

        Refuse everything while the organization's judge tokens are used up: before money is held.
        """
        court, applied = self._courtroom.court, self._applied
        if court is None:
            return
        if self.guards_request or self.holds_answer:
            tokens = self._estimated_tokens(court, Direction.REQUEST)
            court.rate.check(self._matter.customer.organization_id, tokens)
        if not applied.selected:
            return
        asks_request = applying(applied.all, Direction.REQUEST)
        try:
            subject = await self._request_subject(court) if asks_request else None
        except (NotEvaluable, JudgeFailed) as failure:
            # Told later, in its turn among the refusals.
            without_frames(failure)
            return
        except TooLongToJudge:
            if applying(applied.by_scope, Direction.REQUEST):
                return
            raise SelectionTooLarge(tokens_max=court.request_tokens_max) from None
        court.weigh_selection(subject, applied.by_scope, applied.selected)

    async def judge_request(self) -> None:
        """Raises why the request goes nowhere. Monitoring looks at it either way."""
        try:
            if self._courtroom.court is None:
                self._refuse_unjudged()
            await self._enforce(Direction.REQUEST, self._request_subject)
        finally:
            self._watch(Direction.REQUEST, self._request_content, self._matter.size_bytes)

    async def judge_answer(self, content_of: ContentOf, size_bytes: int) -> None:
        """The same of what came back."""
        try:
            await self._enforce(
                Direction.RESPONSE,
                lambda court: self._laid_out(court, content_of, size_bytes),
            )
        except TooLongToJudge:
            raise AnswerTooLongToJudge from None
        except NotEvaluable:
            raise AnswerNotEvaluable from None
        finally:
            self.watch_answer(content_of, size_bytes)

    def checkpoints(self) -> Checkpoints:
        """For an answer that is held back and comes in pieces."""
        court = self._courtroom.court
        assert court is not None, "without one the request was refused"
        return Checkpoints(
            Bench(
                court=court,
                tasks=self._courtroom.tasks,
                clock=self._courtroom.clock,
                policies=self._applied.of(Direction.RESPONSE, Mode.ENFORCING),
                lay_out=partial(self._laid_out, court, is_watched=True),
                spent_tokens=self._spent_tokens,
            )
        )

    def refuse_early(self, match: EarlyMatch, content_of: ContentOf, size_bytes: int) -> None:
        """Raises what `judge_answer` would have, for what there is of the answer."""
        self._note(Direction.RESPONSE, match.decisions, match.subject, match.began_seconds)
        self.watch_answer(content_of, size_bytes)
        refused = refusal(match.decisions, Direction.RESPONSE)
        assert refused is not None, "a match refuses"
        raise refused

    def watch_answer(self, content_of: ContentOf, size_bytes: int) -> None:
        """Let monitoring look at what came back, later."""
        self._watch(Direction.RESPONSE, content_of, size_bytes)

    @property
    def watched_bytes_max(self) -> int:
        """How much of a stream is kept for monitoring: as much as would be held back."""
        return self._courtroom.held_bytes.request_max

    def drop_answer(self, reason: DecisionLoss) -> None:
        """Count what nobody will decide of an answer: there was one, and no verdict on it."""
        policies = applying(self._applied.all, Direction.RESPONSE)
        has_judge = self._courtroom.court is not None
        metrics.decisions_dropped(len(policies), reason if has_judge else DecisionLoss.NO_JUDGE)

    # Enforcing

    def _refuse_unjudged(self) -> None:
        """Never a silent pass: neither of what must be decided nor of what was asked for."""
        is_enforced = any(policy.mode is Mode.ENFORCING for policy in self._applied.all)
        if is_enforced or self._applied.has_selection:
            policies = self._applied.of(Direction.REQUEST, Mode.ENFORCING)
            metrics.decisions_dropped(len(policies), DecisionLoss.NO_JUDGE)
            raise PolicyEvaluatorUnavailable

    async def _enforce(
        self, direction: JudgedDirection, subject_of: Callable[[Court], Awaitable[Subject]]
    ) -> None:
        policies = self._applied.of(direction, Mode.ENFORCING)
        court, pending = self._courtroom.court, self._courtroom.pending
        if not policies:
            return
        if court is None:
            raise PolicyEvaluatorUnavailable
        taken_tokens = self._take_room(court, direction, len(policies))
        organization_id = self._matter.customer.organization_id
        pending.begin(organization_id)
        try:
            await self._examine(court, direction, policies, subject_of)
        finally:
            pending.end(organization_id)
            court.rate.correct(organization_id, self._used_tokens - taken_tokens)

    def _take_room(self, court: Court, direction: JudgedDirection, policies: int) -> int:
        """Take the judge tokens of a request, about; raises while its organization has none.

        An answer was generated and is paid for: it is judged also if the tokens are used up, and
        then they have to fill before the next request passes.
        """
        self._used_tokens = 0
        if direction is Direction.RESPONSE:
            return 0
        organization_id, pending = self._matter.customer.organization_id, self._courtroom.pending
        if not pending.has_room(organization_id):
            metrics.decisions_dropped(policies, DecisionLoss.NO_ROOM)
            bound_metrics.quota_refused(Quota.PENDING_EVALUATIONS)
            raise TooManyEvaluations(pending.organization_max)
        tokens = self._estimated_tokens(court, direction)
        try:
            court.rate.take(organization_id, tokens)
        except JudgeTokensExhausted:
            metrics.decisions_dropped(policies, DecisionLoss.NO_TOKENS)
            raise
        return tokens

    def _estimated_tokens(self, court: Court, direction: JudgedDirection) -> int:
        """At least one, so that a request waits also for tokens that earlier answers took."""
        policies = self._applied.of(direction, Mode.ENFORCING)
        return max(1, court.estimate(self._matter.size_bytes, policies))

    async def _examine(
        self,
        court: Court,
        direction: JudgedDirection,
        policies: Sequence[AppliedPolicy],
        subject_of: Callable[[Court], Awaitable[Subject]],
    ) -> None:
        began_seconds = self._courtroom.clock.monotonic_seconds()
        try:
            subject = await subject_of(court)
            self._used_tokens = court.weigh(subject, policies, spent_tokens=self._spent_tokens)
            self._spent_tokens += self._used_tokens
            decisions = await court.examine(subject, policies)
        except (PolicyNotEvaluable, JudgeFailed) as failure:
            reason = _reason(failure)
            self._note(direction, unanswered(policies, reason), None, began_seconds)
            raise self._named(failure) from None
        except asyncio.CancelledError:
            metrics.decisions_dropped(len(policies), DecisionLoss.STOPPED)
            raise
        self._used_tokens = court.tokens(subject, _asked(decisions))
        self._note(direction, decisions, subject, began_seconds)
        if (refused := refusal(decisions, direction)) is not None:
            raise refused

    def _request_content(self, bytes_max: float) -> Content:
        return contents.of_request(self._matter.request, bytes_max)

    async def _request_subject(self, court: Court) -> Subject:
        """Laid out once, however often it is needed."""
        if self._subject is None:
            size_bytes = self._matter.size_bytes
            self._subject = await self._laid_out(court, self._request_content, size_bytes)
        return self._subject

    async def _laid_out(
        self, court: Court, content_of: ContentOf, size_bytes: int, *, is_watched: bool = False
    ) -> Subject:
        matter = self._matter
        return await court.lay_out(
            matter.customer.organization_id,
            matter.request_id,
            content_of,
            size_bytes=size_bytes,
            is_watched=is_watched,
        )

    def _named(self, failure: Unjudged) -> GatewayError:
        if isinstance(failure, JudgeFailed):
            return PolicyEvaluatorUnavailable()
        if failure.param is not None:
            failure.param = self._matter.name_of(failure.param)
        return failure

    # Monitoring

    def _watch(self, direction: JudgedDirection, content_of: ContentOf, size_bytes: int) -> None:
        policies = self._applied.of(direction, Mode.MONITORING)
        court = self._courtroom.court
        if not policies:
            return
        if court is None:
            metrics.decisions_dropped(len(policies), DecisionLoss.NO_JUDGE)
            return
        self._courtroom.watcher.take(
            self._matter.customer.organization_id,
            partial(self._look, court, direction, content_of, size_bytes, policies),
            policies=len(policies),
            size_bytes=size_bytes,
        )

    async def _look(
        self,
        court: Court,
        direction: JudgedDirection,
        content_of: ContentOf,
        size_bytes: int,
        policies: Sequence[AppliedPolicy],
    ) -> None:
        began_seconds = self._courtroom.clock.monotonic_seconds()
        try:
            subject = self._subject if direction is Direction.REQUEST else None
            if subject is None:
                subject = await self._laid_out(court, content_of, size_bytes, is_watched=True)
            tokens = court.weigh(subject, policies)
            court.rate.take(subject.organization_id, tokens, is_watched=True)
        except JudgeTokensExhausted:
            metrics.decisions_dropped(len(policies), DecisionLoss.NO_TOKENS)
            return
        except (PolicyNotEvaluable, JudgeFailed) as failure:
            without_frames(failure)
            self._note(direction, unanswered(policies, _reason(failure)), None, began_seconds)
            return
        decisions = await court.watch(subject, policies)
        unused_tokens = tokens - court.tokens(subject, _asked(decisions))
        court.rate.correct(subject.organization_id, -unused_tokens, is_watched=True)
        self._note(direction, decisions, subject, began_seconds)

    def _note(
        self,
        direction: JudgedDirection,
        decisions: Sequence[Decision],
        subject: Subject | None,
        began_seconds: float,
    ) -> None:
        clock = self._courtroom.clock
        examination = examinations.of(
            self._matter.customer,
            self._matter.request_id,
            direction,
            decisions,
            subject,
            examined_at=clock.now(),
            seconds=clock.monotonic_seconds() - began_seconds,
        )
        self._courtroom.note(examination)


def _asked(decisions: Sequence[Decision]) -> list[AppliedPolicy]:
    """Policies whose verdict was not remembered."""
    return [each.policy for each in decisions if not each.is_cached]


def _reason(failure: Unjudged) -> FailureReason:
    if isinstance(failure, JudgeFailed):
        return failure.reason
    is_too_long = isinstance(failure, TooLongToJudge)
    return FailureReason.OVER_BUDGET if is_too_long else FailureReason.NOT_EVALUABLE
