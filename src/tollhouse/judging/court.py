"""The judge as a worker has it: made ready once it answers, and asked within its bounds."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tollhouse.backends.port import BackendPort
from tollhouse.base.clock import Clock
from tollhouse.base.ids import OrganizationId, RequestId
from tollhouse.judging import budget, layout
from tollhouse.judging.asking import Asking, Subject
from tollhouse.judging.cache import VerdictCache
from tollhouse.judging.engine import EngineJudge
from tollhouse.judging.errors import JudgeFailed
from tollhouse.judging.laying_out import Desk
from tollhouse.judging.preparing import find_variants
from tollhouse.judging.seals import Seals
from tollhouse.judging.slots import Slots
from tollhouse.judging.token_rate import JudgeTokenRate
from tollhouse.judging.types import (
    Content,
    ContentOf,
    Decision,
    FailureReason,
    Order,
    Profile,
)
from tollhouse.judging.verdict import unanswered
from tollhouse.judging.windows import Sheet
from tollhouse.policies.types import AppliedPolicy, Direction

logger = logging.getLogger("tollhouse.judging")

LAYING_OUT_MAX = 2
"""Contents that enforcing lays out at once, of different organizations."""
WATCHING_SHARE = 4
"""Monitoring gets this part of the places with the judge, and none that enforcing could use."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeConfig:
    """How the judge is asked, and how much of it a request, an organization, a worker may use.

    `organization_tokens_per_minute` holds for enforcing, and once more for monitoring.
    """

    backend: str
    profile: Profile
    has_tokenizer: bool
    deadline_seconds: float
    request_tokens_max: int
    organization_tokens_per_minute: int
    request_questions_max: int
    organization_questions_max: int
    worker_questions_max: int
    verdicts_max: int
    verdict_seconds: float


class Court:
    """One per worker. Until the judge's tokenizer has answered, whatever is asked fails."""

    def __init__(
        self, config: JudgeConfig, port: BackendPort, clock: Clock, *, secret: bytes
    ) -> None:
        self._config = config
        self._port = port
        self._clock = clock
        self._seals = Seals(secret)
        self._preparing = asyncio.Lock()
        self._desk, self._desk_of_watching = Desk(at_once_max=LAYING_OUT_MAX), Desk()
        self.rate = JudgeTokenRate(clock, tokens_per_minute=config.organization_tokens_per_minute)
        self._failed: JudgeFailed | None = None
        self._enforcing: Asking | None = None
        self._watching: Asking | None = None

    @property
    def longest_seconds(self) -> float:
        """How long one content can take at most: to lay it out, to get the judge ready, to ask."""
        return 3 * self._config.deadline_seconds

    @property
    def request_tokens_max(self) -> int:
        """What all questions about one request may take together."""
        return self._config.request_tokens_max

    async def lay_out(
        self,
        organization_id: OrganizationId,
        request_id: RequestId,
        content_of: ContentOf,
        *,
        size_bytes: int,
        is_watched: bool,
    ) -> Subject:
        """Make a subject of what has about this size. Raises why it can not be judged.

        Enforcing does not wait for what is only watched.
        """
        desk = self._desk_of_watching if is_watched else self._desk
        work = partial(self._laid_out, organization_id, request_id, content_of)
        try:
            async with asyncio.timeout(self._config.deadline_seconds):
                return await desk.make(organization_id, work, size_bytes=size_bytes)
        except TimeoutError:
            raise JudgeFailed(FailureReason.TIMED_OUT) from None

    def _laid_out(
        self, organization_id: OrganizationId, request_id: RequestId, content_of: ContentOf
    ) -> Subject:
        profile = self._config.profile
        content = content_of(self._config.request_tokens_max * profile.bytes_per_token)
        subject = self.subject(organization_id, request_id, content)
        subject.sheet.windows(bytes_max=layout.window_bytes(profile))
        return subject

    def subject(
        self, organization_id: OrganizationId, request_id: RequestId, content: Content
    ) -> Subject:
        """A content that can be asked about.

        The beginning of an answer is not known while it grows, so that what its checkpoints have
        in common is the request.
        """
        sheet = Sheet(content)
        opening = request_id.bytes if content.direction is Direction.RESPONSE else None
        seal = self._seals.of(organization_id, content, sheet, opening=opening)
        return Subject(organization_id=organization_id, sheet=sheet, seal=seal)

    def weigh(
        self, subject: Subject, policies: Sequence[AppliedPolicy], *, spent_tokens: int = 0
    ) -> int:
        """What asking all of them takes, about; refuses what a request may not take."""
        return budget.check_content(
            subject.sheet,
            policies,
            self._config.profile,
            tokens_max=self._config.request_tokens_max - spent_tokens,
        )

    def estimate(self, size_bytes: int, policies: Sequence[AppliedPolicy]) -> int:
        """Return the tokens that policies take on a content of this size, before it is laid out."""
        return budget.sized_tokens(size_bytes, policies, self._config.profile)

    def tokens(self, subject: Subject, policies: Sequence[AppliedPolicy]) -> int:
        """Return the tokens that policies take on a content, whether or not that is too much."""
        return budget.content_tokens(subject.sheet, policies, self._config.profile)

    def weigh_rule(self, policy: AppliedPolicy) -> None:
        """Refuse a question for which the judge has no room."""
        budget.check_rule(policy.rule, self._config.profile)

    def weigh_selection(
        self,
        subject: Subject | None,
        by_scope: Sequence[AppliedPolicy],
        selected: Sequence[AppliedPolicy],
    ) -> None:
        """Refuse a selection that a request may not make."""
        budget.check_selection(
            None if subject is None else subject.sheet,
            by_scope,
            selected,
            self._config.profile,
            tokens_max=self._config.request_tokens_max,
        )

    async def examine(
        self, subject: Subject, policies: Sequence[AppliedPolicy]
    ) -> tuple[Decision, ...]:
        """One decision for each policy, in their order; failures are decisions too."""
        try:
            asking = self._enforcing or await self._prepared()
        except JudgeFailed as failure:
            return unanswered(policies, failure.reason)
        return await asking.examine(subject, policies)

    async def warm(self, subject: Subject, policy: AppliedPolicy) -> None:
        """Let the judge read a content that still grows, where it would remember having read it.

        That is of use only if it is soon: it has none of the places of enforcing.
        """
        if self._watching is not None and self._config.profile.order is Order.CONTENT_FIRST:
            await self._watching.warm(subject, policy)

    async def watch(
        self, subject: Subject, policies: Sequence[AppliedPolicy]
    ) -> tuple[Decision, ...]:
        """As `examine`, for monitoring: in places of its own."""
        try:
            await self._prepared()
        except JudgeFailed as failure:
            return unanswered(policies, failure.reason)
        assert self._watching is not None, "both are made together"
        return await self._watching.examine(subject, policies)

    async def prepare(self) -> None:
        """Ask the tokenizer now, so that no request has to wait for it; failing is told."""
        try:
            await self._prepared()
        except JudgeFailed as failure:
            logger.warning(
                "judge_not_ready", extra={"backend": self._config.backend, "reason": failure.reason}
            )

    async def _prepared(self) -> Asking:
        """One try at a time; whoever waited for one that failed has failed with it."""
        failed_before = self._failed
        async with self._preparing:
            if self._enforcing is not None:
                return self._enforcing
            if self._failed is not None and self._failed is not failed_before:
                raise JudgeFailed(self._failed.reason)
            try:
                self._enforcing, self._watching = self._made(await self._judge())
            except JudgeFailed as failure:
                self._failed = failure
                raise
            return self._enforcing

    async def _judge(self) -> EngineJudge:
        config = self._config
        try:
            async with asyncio.timeout(config.deadline_seconds):
                found = await find_variants(
                    self._port, config.profile.model, has_tokenizer=config.has_tokenizer
                )
        except TimeoutError:
            raise JudgeFailed(FailureReason.TIMED_OUT) from None
        return EngineJudge(self._port, config.profile, found, backend=config.backend)

    def _made(self, judge: EngineJudge) -> tuple[Asking, Asking]:
        """Both remember verdicts together: a policy is in one mode at a time."""
        config = self._config
        cache = VerdictCache(
            self._clock,
            verdicts_max=config.verdicts_max,
            age_seconds_max=config.verdict_seconds,
        )
        return self._asking(judge, cache, 1), self._asking(judge, cache, WATCHING_SHARE)

    def _asking(self, judge: EngineJudge, cache: VerdictCache, share: int) -> Asking:
        config = self._config
        return Asking(
            judge,
            Slots(
                worker_max=max(1, config.worker_questions_max // share),
                organization_max=max(1, config.organization_questions_max // share),
            ),
            cache,
            request_max=config.request_questions_max,
            deadline_seconds=config.deadline_seconds,
        )
