"""The deployment's judge for authors of policies: evaluates texts as a worker would."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from rich.progress import Progress

from tollhouse.base.ids import OrganizationId
from tollhouse.catalog import rules as catalog
from tollhouse.cli.session import Session
from tollhouse.evaluation.dependencies import evaluator_for
from tollhouse.evaluation.errors import NoJudge
from tollhouse.evaluation.policy_preflight import why_failed
from tollhouse.evaluation.trials import TRIALS_AT_ONCE_MAX, PolicyTrials
from tollhouse.evaluation.types import EvaluationDecision, FailureReason
from tollhouse.inference.assembly import backend_port
from tollhouse.observability import log
from tollhouse.policies.types import AppliedPolicy

LOG_LEVEL: Final = "ERROR"


@dataclass(frozen=True, slots=True)
class AuthoringJudge:
    """The judge with its budgets, for one organization."""

    trials: PolicyTrials
    organization_id: OrganizationId

    @property
    def is_demonstration(self) -> bool:
        """Whether the judge is that of a trial."""
        return self.trials.is_demonstration

    async def decide(
        self, policies: Sequence[AppliedPolicy], text: str
    ) -> tuple[EvaluationDecision, ...]:
        """Return the decision of each policy about one text."""
        return await self.trials.decide(self.organization_id, policies, text)

    async def decide_all(
        self, policies: Sequence[AppliedPolicy], texts: Sequence[str], bars: Progress
    ) -> list[tuple[EvaluationDecision, ...]]:
        """Return the decisions for each text, in their order; a few texts run concurrently."""
        slots = asyncio.Semaphore(TRIALS_AT_ONCE_MAX)
        bar = bars.add_task("Asking the judge", total=len(texts))

        async def one(text: str) -> tuple[EvaluationDecision, ...]:
            async with slots:
                decided = await self.decide(policies, text)
            bars.advance(bar)
            return decided

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(text)) for text in texts]
        return [task.result() for task in tasks]


@asynccontextmanager
async def authoring_judge(
    operator: Session, organization_id: OrganizationId
) -> AsyncGenerator[AuthoringJudge]:
    """Open the judge for the block. Raises `NoJudge` if none is configured."""
    if not operator.settings.judge:
        raise NoJudge
    async with policy_trials(operator) as trials:
        yield AuthoringJudge(trials, organization_id)


@asynccontextmanager
async def policy_trials(operator: Session) -> AsyncGenerator[PolicyTrials]:
    """Open trials for the block, with the judge if one is configured."""
    settings = operator.settings
    parsed = catalog.parse(settings.backends, settings.models, settings.judge)
    if parsed.judge is None:
        yield PolicyTrials(None)
        return
    # Failures are reported with the decision that they concern, so less is logged.
    log.configure(LOG_LEVEL)
    name = parsed.judge.backend
    port = backend_port(name, parsed.backends[name], operator.clock)
    secret = settings.secrets.master.encode()
    evaluator = evaluator_for(parsed, {name: port}, operator.clock, secret=secret)
    try:
        yield PolicyTrials(evaluator)
    finally:
        await port.close()


def failure_sentences(
    reasons: Iterable[str | None], *, is_demonstration: bool = False
) -> list[str]:
    """Return a sentence for each different reason, the most frequent first."""
    counted = Counter(FailureReason(reason) for reason in reasons if reason is not None)
    return [
        f"{reason.value}{f' ({count} times)' if count > 1 else ''}: "
        f"{why_failed(reason, is_demonstration=is_demonstration)}."
        for reason, count in counted.most_common()
    ]
