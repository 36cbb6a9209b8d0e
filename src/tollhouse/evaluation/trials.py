"""Policy trials: evaluate policies on a sample text. Nothing is stored or charged."""

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from tollhouse.base.ids import OrganizationId, RequestId
from tollhouse.base.policies import Direction
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.evaluation.content import rendering
from tollhouse.evaluation.content.rendering import ChoiceText
from tollhouse.evaluation.errors import (
    NoJudge,
    NotEvaluable,
    RuleTooLong,
    TooLongToJudge,
    TooManyTrials,
)
from tollhouse.evaluation.evaluator import PolicyEvaluator
from tollhouse.evaluation.judge.verdict import unanswered
from tollhouse.evaluation.types import Content, EvaluationDecision, FailureReason
from tollhouse.policies.types import AppliedPolicy

TRIALS_AT_ONCE_MAX: Final = 4
"""Trials of one organization at once in a worker: a person waits for each."""
_NO_REQUEST: Final = RequestId(UUID(int=0))
"""The delimiter of an answer follows from its request ID; equal IDs make scores comparable."""


class PolicyTrials:
    """Runs trials in the slots of monitoring, so that no request waits for them."""

    def __init__(self, evaluator: PolicyEvaluator | None) -> None:
        self._evaluator = evaluator
        self._running: Counter[OrganizationId] = Counter()

    @property
    def is_demonstration(self) -> bool:
        """Whether the judge is that of a trial."""
        return self._evaluator is not None and self._evaluator.is_demonstration

    async def decide(
        self, organization_id: OrganizationId, policies: Sequence[AppliedPolicy], text: str
    ) -> tuple[EvaluationDecision, ...]:
        """Return one decision per policy. Evaluates each alone, since directions may differ."""
        if self._evaluator is None:
            raise NoJudge
        with self._slot(organization_id):
            return tuple(
                [await _decide(self._evaluator, organization_id, each, text) for each in policies]
            )

    @contextmanager
    def _slot(self, organization_id: OrganizationId) -> Generator[None]:
        """Hold a slot of the organization, or raise `TooManyTrials` at once."""
        if self._running[organization_id] >= TRIALS_AT_ONCE_MAX:
            raise TooManyTrials(at_once_max=TRIALS_AT_ONCE_MAX)
        self._running[organization_id] += 1
        try:
            yield
        finally:
            self._running[organization_id] -= 1
            if not self._running[organization_id]:
                del self._running[organization_id]


async def _decide(
    evaluator: PolicyEvaluator, organization_id: OrganizationId, policy: AppliedPolicy, text: str
) -> EvaluationDecision:
    try:
        content = sample_content(policy.direction, text)
        judged = evaluator.judged_content(organization_id, _NO_REQUEST, content)
        evaluator.budget.check_rule(policy.rule)
        tokens = evaluator.budget.check_content(judged.rendered, [policy])
    except (RuleTooLong, TooLongToJudge):
        (decision,) = unanswered([policy], FailureReason.OVER_BUDGET)
    except NotEvaluable:
        (decision,) = unanswered([policy], FailureReason.NOT_EVALUABLE)
    else:
        evaluator.rate.acquire(organization_id, tokens, is_monitoring=True)
        (decision,) = await evaluator.monitor(judged, [policy])
    return decision


def sample_content(direction: Direction, text: str) -> Content:
    """Return the text as a user's message, or as an answer for a policy on responses."""
    if direction is Direction.RESPONSE:
        message = {"role": "assistant", "content": text}
        return rendering.answer_content([ChoiceText(index=0, message=message, logprobs=[])])
    messages = [ChatMessage(role="user", content=text)]
    return rendering.request_content(ChatRequest(model="authoring", messages=messages))
