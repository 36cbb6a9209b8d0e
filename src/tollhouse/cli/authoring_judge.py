"""Asking the deployment's judge about texts, as a worker would, for those who write policies."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from rich.progress import Progress

from tollhouse.backends.openai_http import OpenAiBackend
from tollhouse.backends.transport import Transport
from tollhouse.base.errors import GatewayError, Kind
from tollhouse.base.ids import OrganizationId, RequestId, time_ordered_uuid
from tollhouse.catalog import rules as catalog
from tollhouse.cli.session import Session
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.inference.assembly import backend_config
from tollhouse.inference.courts import court_of
from tollhouse.judging import content as contents
from tollhouse.judging.content import Said
from tollhouse.judging.court import Court
from tollhouse.judging.errors import TooLongToJudge
from tollhouse.judging.types import Content, Decision, FailureReason
from tollhouse.judging.verdict import unanswered
from tollhouse.observability import log
from tollhouse.policies.types import AppliedPolicy, Direction

TEXTS_AT_ONCE: Final = 4
LOG_LEVEL: Final = "ERROR"


class NoJudge(GatewayError):
    """There is nobody to ask."""

    kind = Kind.UNAVAILABLE
    code = "no_judge"

    def __init__(self) -> None:
        super().__init__(
            "No judge is configured, so that nothing can be asked. See docs/guides/judging.md."
        )


@dataclass(frozen=True, slots=True)
class AuthoringJudge:
    """The judge with its bounds, for one organization."""

    court: Court
    organization_id: OrganizationId

    async def decide(self, policies: Sequence[AppliedPolicy], text: str) -> tuple[Decision, ...]:
        """A decision of each, one after the other: versions of a policy may look in other ways."""
        return tuple([await self._decide(policy, text) for policy in policies])

    async def _decide(self, policy: AppliedPolicy, text: str) -> Decision:
        content = _content(policy.direction, text)
        request_id = RequestId(time_ordered_uuid())
        subject = self.court.subject(self.organization_id, request_id, content)
        try:
            self.court.weigh(subject, [policy])
        except TooLongToJudge:
            (decision,) = unanswered([policy], FailureReason.OVER_BUDGET)
        else:
            (decision,) = await self.court.examine(subject, [policy])
        return decision

    async def decide_all(
        self, policies: Sequence[AppliedPolicy], texts: Sequence[str], bars: Progress
    ) -> list[tuple[Decision, ...]]:
        """For each text in their order, a few at a time."""
        places = asyncio.Semaphore(TEXTS_AT_ONCE)
        bar = bars.add_task("Asking the judge", total=len(texts))

        async def one(text: str) -> tuple[Decision, ...]:
            async with places:
                decided = await self.decide(policies, text)
            bars.advance(bar)
            return decided

        async with asyncio.TaskGroup() as asking:
            tasks = [asking.create_task(one(text)) for text in texts]
        return [task.result() for task in tasks]


@asynccontextmanager
async def authoring_judge(
    operator: Session, organization_id: OrganizationId
) -> AsyncGenerator[AuthoringJudge]:
    """Ready to be asked for the time of the block."""
    settings = operator.settings
    offered = catalog.parse(settings.backends, settings.models, settings.judge)
    if offered.judge is None:
        raise NoJudge
    # What fails is told with the decision that it concerns.
    log.configure(LOG_LEVEL)
    transport = Transport()
    name = offered.judge.backend
    port = OpenAiBackend(backend_config(name, offered.backends[name]), transport, operator.clock)
    secret = settings.secrets.master.encode()
    court = court_of(offered, {name: port}, operator.clock, secret=secret)
    assert court is not None, "there is a judge"
    try:
        yield AuthoringJudge(court, organization_id)
    finally:
        await transport.close()


def _content(direction: Direction, text: str) -> Content:
    """The text as what a customer says, or for a policy on answers as what a model says."""
    if direction is Direction.RESPONSE:
        message = {"role": "assistant", "content": text}
        return contents.of_answer([Said(index=0, message=message, logprobs=[])])
    messages = [ChatMessage(role="user", content=text)]
    return contents.of_request(ChatRequest(model="authoring", messages=messages))
