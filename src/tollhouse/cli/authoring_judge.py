"""Asking the deployment's judge about texts, as a worker would, for those who write policies."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from rich.progress import Progress

from tollhouse.backends.openai_http import OpenAiBackend
from tollhouse.backends.transport import Transport
from tollhouse.base.ids import OrganizationId
from tollhouse.catalog import rules as catalog
from tollhouse.cli.session import Session
from tollhouse.inference.assembly import backend_config
from tollhouse.inference.courts import court_of
from tollhouse.judging.errors import NoJudge
from tollhouse.judging.trials import TRIALS_AT_ONCE_MAX, Trials
from tollhouse.judging.types import Decision
from tollhouse.observability import log
from tollhouse.policies.types import AppliedPolicy

LOG_LEVEL: Final = "ERROR"


@dataclass(frozen=True, slots=True)
class AuthoringJudge:
    """The judge with its bounds, for one organization."""

    trials: Trials
    organization_id: OrganizationId

    async def decide(self, policies: Sequence[AppliedPolicy], text: str) -> tuple[Decision, ...]:
        """A decision of each."""
        return await self.trials.decide(self.organization_id, policies, text)

    async def decide_all(
        self, policies: Sequence[AppliedPolicy], texts: Sequence[str], bars: Progress
    ) -> list[tuple[Decision, ...]]:
        """For each text in their order, a few at a time."""
        places = asyncio.Semaphore(TRIALS_AT_ONCE_MAX)
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
    try:
        yield AuthoringJudge(Trials(court), organization_id)
    finally:
        await transport.close()
