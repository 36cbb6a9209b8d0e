"""Texts that nobody sent, judged for those who write policies. Nothing of it is kept."""

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from tollhouse.base.ids import OrganizationId, RequestId
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.judging import content as contents
from tollhouse.judging.content import Said
from tollhouse.judging.court import Court
from tollhouse.judging.errors import (
    NoJudge,
    NotEvaluable,
    RuleTooLong,
    TooLongToJudge,
    TooManyTrials,
)
from tollhouse.judging.types import Content, Decision, FailureReason
from tollhouse.judging.verdict import unanswered
from tollhouse.policies.types import AppliedPolicy, Direction

TRIALS_AT_ONCE_MAX: Final = 4
"""Of one organization: a person waits for each."""
_NO_REQUEST: Final = RequestId(UUID(int=0))
"""The fence of an answer follows from its request, and scores are compared behind one fence."""


class Trials:
    """One per worker. They have the places of monitoring, so that no request waits for them."""

    def __init__(self, court: Court | None) -> None:
        self._court = court
        self._under_way: Counter[OrganizationId] = Counter()

    async def decide(
        self, organization_id: OrganizationId, policies: Sequence[AppliedPolicy], text: str
    ) -> tuple[Decision, ...]:
        """A decision of each, one after the other: versions of a policy may look in other ways."""
        if self._court is None:
            raise NoJudge
        with self._place(organization_id):
            return tuple(
                [await _decide(self._court, organization_id, each, text) for each in policies]
            )

    @contextmanager
    def _place(self, organization_id: OrganizationId) -> Generator[None]:
        """Refused rather than waited for. Organizations that try nothing are forgotten."""
        if self._under_way[organization_id] >= TRIALS_AT_ONCE_MAX:
            raise TooManyTrials(TRIALS_AT_ONCE_MAX)
        self._under_way[organization_id] += 1
        try:
            yield
        finally:
            self._under_way[organization_id] -= 1
            if not self._under_way[organization_id]:
                del self._under_way[organization_id]


async def _decide(
    court: Court, organization_id: OrganizationId, policy: AppliedPolicy, text: str
) -> Decision:
    try:
        subject = court.subject(organization_id, _NO_REQUEST, content_of(policy.direction, text))
        court.weigh_rule(policy)
        tokens = court.weigh(subject, [policy])
    except (RuleTooLong, TooLongToJudge):
        (decision,) = unanswered([policy], FailureReason.OVER_BUDGET)
    except NotEvaluable:
        (decision,) = unanswered([policy], FailureReason.NOT_EVALUABLE)
    else:
        court.rate.take(organization_id, tokens, is_watched=True)
        (decision,) = await court.watch(subject, [policy])
    return decision


def content_of(direction: Direction, text: str) -> Content:
    """The text as what a customer says, or for a policy on answers as what a model says."""
    if direction is Direction.RESPONSE:
        message = {"role": "assistant", "content": text}
        return contents.of_answer([Said(index=0, message=message, logprobs=[])])
    messages = [ChatMessage(role="user", content=text)]
    return contents.of_request(ChatRequest(model="authoring", messages=messages))
