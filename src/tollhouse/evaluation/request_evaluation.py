"""The policy evaluation of one request and of its answer: enforcing, monitoring and records."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from tollhouse.base.errors import GatewayError, without_frames
from tollhouse.base.policies import Direction, JudgedDirection, Mode
from tollhouse.base.quotas import Quota
from tollhouse.evaluation.buffer_quota import BufferQuota
from tollhouse.evaluation.content import rendering
from tollhouse.evaluation.dependencies import (
    AppliedPolicies,
    EvaluationInput,
    EvaluatorDependencies,
)
from tollhouse.evaluation.errors import (
    AnswerNotEvaluable,
    AnswerTooLongToJudge,
    JudgeFailed,
    JudgeTokensExhausted,
    NotEvaluable,
    PolicyEvaluatorUnavailable,
    PolicyNotEvaluable,
    SelectionTooLarge,
    TooLongToJudge,
    TooManyEvaluations,
)
from tollhouse.evaluation.evaluator import PolicyEvaluator
from tollhouse.evaluation.judge.question_runner import JudgedContent
from tollhouse.evaluation.judge.verdict import refusal, unanswered
from tollhouse.evaluation.record import evaluation_record
from tollhouse.evaluation.stream_checkpoints import EarlyCheckContext, EarlyMatch, StreamCheckpoints
from tollhouse.evaluation.token_budget import applying
from tollhouse.evaluation.types import Content, EvaluationDecision, FailureReason, RenderContent
from tollhouse.observability import bound_metrics, policy_metrics
from tollhouse.observability.policy_metrics import DecisionLoss
from tollhouse.policies.types import AppliedPolicy

Unjudged = PolicyNotEvaluable | JudgeFailed
"""Errors by which a content is not judged at all."""
FindContent = Callable[[PolicyEvaluator], Awaitable[JudgedContent]]


class RequestEvaluation:
    """Evaluates the policies of one request. Made only if at least one policy applies."""

    def __init__(
        self,
        dependencies: EvaluatorDependencies,
        evaluation_input: EvaluationInput,
        applied: AppliedPolicies,
    ) -> None:
        self._dependencies = dependencies
        self._input = evaluation_input
        self._applied = applied
        self._judged_request: JudgedContent | None = None
        self._spent_tokens = 0
        self._used_tokens = 0

    @property
    def guards_request(self) -> bool:
        """Whether an enforcing policy must judge the request before any backend receives it."""
        return bool(self._applied.matching(Direction.REQUEST, Mode.ENFORCING))

    @property
    def buffers_answer(self) -> bool:
        """Whether an enforcing policy must judge the answer before the caller receives it."""
        return bool(self._applied.matching(Direction.RESPONSE, Mode.ENFORCING))

    @property
    def monitors_answer(self) -> bool:
        """Whether a monitoring policy evaluates the answer."""
        return bool(self._applied.matching(Direction.RESPONSE, Mode.MONITORING))

    @property
    def longest_seconds(self) -> float:
        """The most time that judging adds to a request: its content, then that of its answer."""
        evaluator = self._dependencies.evaluator
        return 0.0 if evaluator is None else 2 * evaluator.longest_seconds

    def buffer_quota(self) -> BufferQuota:
        """Return the quota by which the answer is buffered. The caller releases it."""
        return self._dependencies.buffers.quota_for(self._input.customer.organization_id)

    async def check_budget(self) -> None:
        """Refuse, before credit is held, a request for which the judge has too few tokens.

        Raises `JudgeTokensExhausted` while the organization's rate is used up, and
        `SelectionTooLarge` if the selected policies exceed the budget of a request.
        """
        evaluator, applied = self._dependencies.evaluator, self._applied
        if evaluator is None:
            return
        if self.guards_request or self.buffers_answer:
            tokens = self._estimated_tokens(evaluator, Direction.REQUEST)
            evaluator.rate.check(self._input.customer.organization_id, tokens)
        if not applied.selected:
            return
        judges_request = applying(applied.all, Direction.REQUEST)
        try:
            judged = await self._request_content(evaluator) if judges_request else None
        except (NotEvaluable, JudgeFailed) as failure:
            # `check_request` raises it again: other refusals come first.
            without_frames(failure)
            return
        except TooLongToJudge:
            if applying(applied.by_scope, Direction.REQUEST):
                return
            raise SelectionTooLarge(tokens_max=evaluator.budget.request_tokens_max) from None
        rendered = None if judged is None else judged.rendered
        evaluator.budget.check_selection(rendered, applied.by_scope, applied.selected)

    async def check_request(self) -> None:
        """Evaluate the policies on the request, and raise if it may not be forwarded.

        Monitoring policies are evaluated in either case, beside the request.
        """
        for direction, mode in self._applied.unmatched():
            self._record(direction, mode, (), self._dependencies.clock.monotonic_seconds())
        try:
            if self._dependencies.evaluator is None:
                self._refuse_unjudged()
            await self._enforce(Direction.REQUEST, self._request_content)
        finally:
            self._monitor(Direction.REQUEST, self._render_request, self._input.size_bytes)

    async def check_answer(self, render_content: RenderContent, size_bytes: int) -> None:
        """Evaluate the policies on the complete answer, and raise if it may not be sent."""
        try:
            await self._enforce(
                Direction.RESPONSE,
                lambda evaluator: self._render(evaluator, render_content, size_bytes),
            )
        except TooLongToJudge:
            raise AnswerTooLongToJudge from None
        except NotEvaluable:
            raise AnswerNotEvaluable from None
        finally:
            self.monitor_answer(render_content, size_bytes)

    def checkpoints(self) -> StreamCheckpoints:
        """Return the checkpoints of a stream that is buffered until its verdict."""
        evaluator = self._dependencies.evaluator
        assert evaluator is not None, "a request that needs a judge is refused without one"
        return StreamCheckpoints(
            EarlyCheckContext(
                evaluator=evaluator,
                tasks=self._dependencies.tasks,
                clock=self._dependencies.clock,
                policies=self._applied.matching(Direction.RESPONSE, Mode.ENFORCING),
                render=partial(self._render, evaluator, is_monitoring=True),
                spent_tokens=self._spent_tokens,
            )
        )

    def refuse_early(
        self, match: EarlyMatch, render_content: RenderContent, size_bytes: int
    ) -> None:
        """Record an early match on the answer so far, and raise its `PolicyViolation`."""
        mode = Mode.ENFORCING
        self._record(Direction.RESPONSE, mode, match.decisions, match.began_seconds, match.judged)
        self.monitor_answer(render_content, size_bytes)
        refused = refusal(match.decisions, Direction.RESPONSE)
        assert refused is not None, "a match of an enforcing policy refuses"
        raise refused

    def monitor_answer(self, render_content: RenderContent, size_bytes: int) -> None:
        """Evaluate the monitoring policies on the answer, beside the request."""
        self._monitor(Direction.RESPONSE, render_content, size_bytes)

    @property
    def monitored_bytes_max(self) -> int:
        """The most bytes of a stream that are kept for monitoring: as many as may be buffered."""
        return self._dependencies.buffers.request_max

    def drop_answer(self, reason: DecisionLoss) -> None:
        """Count the policies of an answer that will get no verdict."""
        policies = applying(self._applied.all, Direction.RESPONSE)
        has_judge = self._dependencies.evaluator is not None
        policy_metrics.decisions_dropped(
            len(policies), reason if has_judge else DecisionLoss.NO_JUDGE
        )

    # Enforcing

    def _refuse_unjudged(self) -> None:
        """Raise if a policy is enforcing or was selected, because there is no judge."""
        is_enforced = any(policy.mode is Mode.ENFORCING for policy in self._applied.all)
        if is_enforced or self._applied.has_selection:
            policies = self._applied.matching(Direction.REQUEST, Mode.ENFORCING)
            policy_metrics.decisions_dropped(len(policies), DecisionLoss.NO_JUDGE)
            raise PolicyEvaluatorUnavailable

    async def _enforce(
        self,
        direction: JudgedDirection,
        find_content: FindContent,
    ) -> None:
        policies = self._applied.matching(direction, Mode.ENFORCING)
        evaluator, pending = self._dependencies.evaluator, self._dependencies.pending
        if not policies:
            return
        if evaluator is None:
            raise PolicyEvaluatorUnavailable
        acquired_tokens = self._acquire_tokens(evaluator, direction, len(policies))
        organization_id = self._input.customer.organization_id
        pending.begin(organization_id)
        try:
            await self._evaluate(evaluator, direction, policies, find_content)
        finally:
            pending.end(organization_id)
            evaluator.rate.adjust(organization_id, self._used_tokens - acquired_tokens)

    def _acquire_tokens(
        self, evaluator: PolicyEvaluator, direction: JudgedDirection, policies: int
    ) -> int:
        """Acquire the estimated judge tokens of a request, and return how many.

        Raises `TooManyEvaluations` and `JudgeTokensExhausted`. An answer acquires none here,
        because it is generated and charged: it is judged even if the tokens are used up, and the
        next request waits until they are refilled.
        """
        self._used_tokens = 0
        if direction is Direction.RESPONSE:
            return 0
        organization_id, pending = self._input.customer.organization_id, self._dependencies.pending
        if pending.is_full(organization_id):
            policy_metrics.decisions_dropped(policies, DecisionLoss.NO_ROOM)
            bound_metrics.quota_refused(Quota.PENDING_EVALUATIONS)
            raise TooManyEvaluations(pending_max=pending.organization_max)
        tokens = self._estimated_tokens(evaluator, direction)
        try:
            evaluator.rate.acquire(organization_id, tokens)
        except JudgeTokensExhausted:
            policy_metrics.decisions_dropped(policies, DecisionLoss.NO_TOKENS)
            raise
        return tokens

    def _estimated_tokens(self, evaluator: PolicyEvaluator, direction: JudgedDirection) -> int:
        """Return at least one, so that a request waits for tokens that earlier answers took."""
        policies = self._applied.matching(direction, Mode.ENFORCING)
        return max(1, evaluator.budget.sized_tokens(self._input.size_bytes, policies))

    async def _evaluate(
        self,
        evaluator: PolicyEvaluator,
        direction: JudgedDirection,
        policies: Sequence[AppliedPolicy],
        find_content: FindContent,
    ) -> None:
        began_seconds = self._dependencies.clock.monotonic_seconds()
        try:
            judged = await find_content(evaluator)
            self._used_tokens = evaluator.budget.check_content(
                judged.rendered, policies, spent_tokens=self._spent_tokens
            )
            self._spent_tokens += self._used_tokens
            decisions = await evaluator.evaluate(judged, policies)
        except (PolicyNotEvaluable, JudgeFailed) as failure:
            decisions = unanswered(policies, _reason(failure))
            self._record(direction, Mode.ENFORCING, decisions, began_seconds)
            raise self._caller_error(failure) from None
        except asyncio.CancelledError:
            policy_metrics.decisions_dropped(len(policies), DecisionLoss.STOPPED)
            raise
        self._used_tokens = _used_tokens(evaluator, judged, decisions)
        self._record(direction, Mode.ENFORCING, decisions, began_seconds, judged)
        refused = refusal(decisions, direction, is_demonstration=evaluator.is_demonstration)
        if refused is not None:
            raise refused

    def _render_request(self, bytes_max: float) -> Content:
        return rendering.request_content(self._input.request, bytes_max)

    async def _request_content(self, evaluator: PolicyEvaluator) -> JudgedContent:
        """Return the content of the request, which is rendered only once."""
        if self._judged_request is None:
            size_bytes = self._input.size_bytes
            self._judged_request = await self._render(evaluator, self._render_request, size_bytes)
        return self._judged_request

    async def _render(
        self,
        evaluator: PolicyEvaluator,
        render_content: RenderContent,
        size_bytes: int,
        *,
        is_monitoring: bool = False,
    ) -> JudgedContent:
        evaluation_input = self._input
        return await evaluator.render(
            evaluation_input.customer.organization_id,
            evaluation_input.request_id,
            render_content,
            size_bytes=size_bytes,
            is_monitoring=is_monitoring,
        )

    def _caller_error(self, failure: Unjudged) -> GatewayError:
        """Return the error for the caller, which names a field as the caller wrote it."""
        if isinstance(failure, JudgeFailed):
            return PolicyEvaluatorUnavailable()
        if failure.param is not None:
            failure.param = self._input.name_of(failure.param)
        return failure

    # Monitoring

    def _monitor(
        self, direction: JudgedDirection, render_content: RenderContent, size_bytes: int
    ) -> None:
        policies = self._applied.matching(direction, Mode.MONITORING)
        evaluator = self._dependencies.evaluator
        if not policies:
            return
        if evaluator is None:
            policy_metrics.decisions_dropped(len(policies), DecisionLoss.NO_JUDGE)
            return
        self._dependencies.monitoring_queue.submit(
            self._input.customer.organization_id,
            partial(
                self._evaluate_monitored, evaluator, direction, render_content, size_bytes, policies
            ),
            policies=len(policies),
            size_bytes=size_bytes,
        )

    async def _evaluate_monitored(
        self,
        evaluator: PolicyEvaluator,
        direction: JudgedDirection,
        render_content: RenderContent,
        size_bytes: int,
        policies: Sequence[AppliedPolicy],
    ) -> None:
        began_seconds = self._dependencies.clock.monotonic_seconds()
        try:
            judged = self._judged_request if direction is Direction.REQUEST else None
            if judged is None:
                judged = await self._render(
                    evaluator, render_content, size_bytes, is_monitoring=True
                )
            tokens = evaluator.budget.check_content(judged.rendered, policies)
            evaluator.rate.acquire(judged.organization_id, tokens, is_monitoring=True)
        except JudgeTokensExhausted:
            policy_metrics.decisions_dropped(len(policies), DecisionLoss.NO_TOKENS)
            return
        except (PolicyNotEvaluable, JudgeFailed) as failure:
            without_frames(failure)
            decisions = unanswered(policies, _reason(failure))
            self._record(direction, Mode.MONITORING, decisions, began_seconds)
            return
        decisions = await evaluator.monitor(judged, policies)
        extra_tokens = _used_tokens(evaluator, judged, decisions) - tokens
        evaluator.rate.adjust(judged.organization_id, extra_tokens, is_monitoring=True)
        self._record(direction, Mode.MONITORING, decisions, began_seconds, judged)

    def _record(
        self,
        direction: JudgedDirection,
        mode: Mode,
        evaluated: Sequence[EvaluationDecision],
        began_seconds: float,
        judged: JudgedContent | None = None,
    ) -> None:
        """Record the decisions of one mode, with the paused policies of this mode as skipped."""
        decisions = (*evaluated, *self._applied.skipped(direction, mode))
        if not decisions:
            return
        clock = self._dependencies.clock
        record = evaluation_record(
            self._input.customer,
            self._input.request_id,
            direction,
            decisions,
            judged,
            evaluated_at=clock.now(),
            seconds=clock.monotonic_seconds() - began_seconds,
        )
        self._dependencies.record(record)


def _used_tokens(
    evaluator: PolicyEvaluator, judged: JudgedContent, decisions: Sequence[EvaluationDecision]
) -> int:
    """Return the tokens of all policies whose verdict was not cached."""
    policies = [each.policy for each in decisions if not each.is_cached]
    return evaluator.budget.content_tokens(judged.rendered, policies)


def _reason(failure: Unjudged) -> FailureReason:
    if isinstance(failure, JudgeFailed):
        return failure.reason
    is_too_long = isinstance(failure, TooLongToJudge)
    return FailureReason.OVER_BUDGET if is_too_long else FailureReason.NOT_EVALUABLE
