"""The policy evaluator of a worker: renders contents and asks the judge within its quotas."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tollhouse.backends.port import BackendPort
from tollhouse.base.clock import Clock
from tollhouse.base.ids import OrganizationId, RequestId
from tollhouse.base.policies import DEMONSTRATION_JUDGE, Direction
from tollhouse.evaluation.content.render_queue import RenderQueue
from tollhouse.evaluation.content.windows import RenderedContent
from tollhouse.evaluation.errors import JudgeFailed
from tollhouse.evaluation.judge import prompts
from tollhouse.evaluation.judge.client import JudgeClient
from tollhouse.evaluation.judge.question_runner import JudgedContent, QuestionRunner
from tollhouse.evaluation.judge.quotas import FairSemaphore, JudgeTokenRate
from tollhouse.evaluation.judge.request_keys import JudgeRequestKeyDeriver
from tollhouse.evaluation.judge.verdict import unanswered
from tollhouse.evaluation.judge.verdict_cache import VerdictCache
from tollhouse.evaluation.judge.yes_no_tokens import engine_yes_no_tokens
from tollhouse.evaluation.token_budget import TokenBudget
from tollhouse.evaluation.types import (
    Content,
    EvaluationDecision,
    FailureReason,
    JudgeProfile,
    PromptOrder,
    RenderContent,
)
from tollhouse.policies.types import AppliedPolicy

logger = logging.getLogger("tollhouse.evaluation")

RENDERED_AT_ONCE_MAX = 2
"""Contents that are rendered at once for enforcing, each of another organization."""
MONITORING_SHARE = 4
"""Monitoring has slots of its own with the judge: one for so many of enforcing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeConfig:
    """The judge, and its quotas per request, organization and worker.

    `organization_tokens_per_minute` is the rate of enforcing; monitoring has the same once more.
    """

    backend: str
    profile: JudgeProfile
    has_tokenizer: bool
    deadline_seconds: float
    request_tokens_max: int
    organization_tokens_per_minute: int
    request_questions_max: int
    organization_questions_max: int
    worker_questions_max: int
    verdicts_max: int
    verdict_seconds: float


class PolicyEvaluator:
    """Evaluates policies on contents. Every evaluation fails until the judge's tokenizer answers.

    Enforcing and monitoring have separate slots, queues and token rates.
    """

    def __init__(
        self, config: JudgeConfig, port: BackendPort, clock: Clock, *, secret: bytes
    ) -> None:
        self.is_demonstration = config.profile.model == DEMONSTRATION_JUDGE
        self._config = config
        self._port = port
        self._clock = clock
        self._key_deriver = JudgeRequestKeyDeriver(secret)
        self._preparing = asyncio.Lock()
        self._render_queue = RenderQueue(at_once_max=RENDERED_AT_ONCE_MAX)
        self._monitoring_render_queue = RenderQueue()
        self.budget = TokenBudget(config.profile, request_tokens_max=config.request_tokens_max)
        self.rate = JudgeTokenRate(clock, tokens_per_minute=config.organization_tokens_per_minute)
        self._failed: JudgeFailed | None = None
        self._enforcing: QuestionRunner | None = None
        self._monitoring: QuestionRunner | None = None

    @property
    def longest_seconds(self) -> float:
        """The longest time of one content: render it, prepare the judge, and ask."""
        return 3 * self._config.deadline_seconds

    async def render(
        self,
        organization_id: OrganizationId,
        request_id: RequestId,
        render_content: RenderContent,
        *,
        size_bytes: int,
        is_monitoring: bool,
    ) -> JudgedContent:
        """Render a content of about this size, in a thread if it is large.

        Raises `PolicyNotEvaluable` or `JudgeFailed`. Enforcing does not wait for monitoring.
        """
        queue = self._monitoring_render_queue if is_monitoring else self._render_queue
        work = partial(self._render, organization_id, request_id, render_content)
        try:
            async with asyncio.timeout(self._config.deadline_seconds):
                return await queue.run(organization_id, work, size_bytes=size_bytes)
        except TimeoutError:
            raise JudgeFailed(FailureReason.TIMED_OUT) from None

    def _render(
        self, organization_id: OrganizationId, request_id: RequestId, render_content: RenderContent
    ) -> JudgedContent:
        profile = self._config.profile
        content = render_content(self._config.request_tokens_max * profile.bytes_per_token)
        judged = self.judged_content(organization_id, request_id, content)
        judged.rendered.windows(bytes_max=prompts.window_bytes(profile))
        return judged

    def judged_content(
        self, organization_id: OrganizationId, request_id: RequestId, content: Content
    ) -> JudgedContent:
        """Return a content with its keys.

        The keys of an answer follow from the request ID, because its checkpoints need the same
        delimiter and replica while the answer grows.
        """
        rendered = RenderedContent(content)
        opening = request_id.bytes if content.direction is Direction.RESPONSE else None
        request_keys = self._key_deriver.derive(organization_id, content, rendered, opening=opening)
        return JudgedContent(
            organization_id=organization_id, rendered=rendered, request_keys=request_keys
        )

    async def evaluate(
        self, judged: JudgedContent, policies: Sequence[AppliedPolicy]
    ) -> tuple[EvaluationDecision, ...]:
        """Return one decision per policy, in their order. A failure is a decision too."""
        try:
            runner = self._enforcing or await self._prepared()
        except JudgeFailed as failure:
            return unanswered(policies, failure.reason)
        return await runner.evaluate(judged, policies)

    async def warm(self, judged: JudgedContent, policy: AppliedPolicy) -> None:
        """Let the judge read a growing content, so that its prefix cache has it at the verdict.

        Uses slots of monitoring. Does nothing if the content is not first in the prompt.
        """
        if self._monitoring is not None and self._config.profile.order is PromptOrder.CONTENT_FIRST:
            await self._monitoring.warm(judged, policy)

    async def monitor(
        self, judged: JudgedContent, policies: Sequence[AppliedPolicy]
    ) -> tuple[EvaluationDecision, ...]:
        """Return one decision per policy, as `evaluate` does, in the slots of monitoring."""
        try:
            await self._prepared()
        except JudgeFailed as failure:
            return unanswered(policies, failure.reason)
        assert self._monitoring is not None, "both are made together"
        return await self._monitoring.evaluate(judged, policies)

    async def prepare(self) -> None:
        """Ask the tokenizer before the first request needs it. Logs a failure."""
        try:
            await self._prepared()
        except JudgeFailed as failure:
            logger.warning(
                "judge_not_ready", extra={"backend": self._config.backend, "reason": failure.reason}
            )

    async def _prepared(self) -> QuestionRunner:
        """Return the runner of enforcing. Calls that wait for a failing attempt fail with it."""
        failed_before = self._failed
        async with self._preparing:
            if self._enforcing is not None:
                return self._enforcing
            if self._failed is not None and self._failed is not failed_before:
                raise JudgeFailed(self._failed.reason)
            try:
                self._enforcing, self._monitoring = self._runners(await self._judge())
            except JudgeFailed as failure:
                self._failed = failure
                raise
            return self._enforcing

    async def _judge(self) -> JudgeClient:
        config = self._config
        try:
            async with asyncio.timeout(config.deadline_seconds):
                found = await engine_yes_no_tokens(
                    self._port, config.profile.model, has_tokenizer=config.has_tokenizer
                )
        except TimeoutError:
            raise JudgeFailed(FailureReason.TIMED_OUT) from None
        return JudgeClient(self._port, config.profile, found, backend=config.backend)

    def _runners(self, judge: JudgeClient) -> tuple[QuestionRunner, QuestionRunner]:
        """Return the runners of enforcing and monitoring, which share a verdict cache."""
        config = self._config
        cache = VerdictCache(
            self._clock,
            verdicts_max=config.verdicts_max,
            age_seconds_max=config.verdict_seconds,
        )
        return self._runner(judge, cache, 1), self._runner(judge, cache, MONITORING_SHARE)

    def _runner(self, judge: JudgeClient, cache: VerdictCache, share: int) -> QuestionRunner:
        config = self._config
        return QuestionRunner(
            judge,
            FairSemaphore(
                worker_max=max(1, config.worker_questions_max // share),
                organization_max=max(1, config.organization_questions_max // share),
            ),
            cache,
            request_max=config.request_questions_max,
            deadline_seconds=config.deadline_seconds,
        )
