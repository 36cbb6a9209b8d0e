"""A court in front of a real engine: one question at a time, and every score counts."""

import secrets
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from tests.support.engine import Engine, running_engine
from tests.support.judge import backend_of
from tests.support.vllm import NAME as VLLM_MODEL
from tests.support.vllm import running_vllm
from tollhouse.base.clock import SystemClock
from tollhouse.base.ids import OrganizationId, PolicyId, RequestId, time_ordered_uuid
from tollhouse.base.policies import Direction, JudgedDirection, Mode
from tollhouse.cli.trial.demo_engine import MODEL as LLAMA_MODEL
from tollhouse.evaluation.evaluator import JudgeConfig, PolicyEvaluator
from tollhouse.evaluation.judge.question_runner import JudgedContent
from tollhouse.evaluation.types import (
    Content,
    ContentPart,
    EvaluationDecision,
    JudgeProfile,
    LogprobSource,
    PromptOrder,
    Score,
)
from tollhouse.policies.types import AppliedPolicy
from tollhouse.trial.llama import SLOT_TOKENS

DEADLINE_SECONDS: Final = 3_600.0
FIXED_SECRET: Final = b"the same fences for every engine"
FIXED_ORGANIZATION: Final = OrganizationId(UUID(int=1))
_REQUEST: Final = RequestId(UUID(int=2))
_THRESHOLD_BASIS_POINTS: Final = 1
"""Any score decides, so that nothing is asked twice and no score is lost."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Judging:
    """A real engine, its name for the model, and how its probabilities are read."""

    engine: Engine
    model: str
    reading: LogprobSource


@contextmanager
def judging_engine(name: str) -> Generator[Judging]:
    """An engine that nobody else uses: `llama` or `vllm`."""
    if name == "vllm":
        with running_vllm() as engine:
            yield Judging(engine=engine, model=VLLM_MODEL, reading=LogprobSource.TOKEN_IDS)
    else:
        with running_engine() as engine:
            yield Judging(engine=engine, model=LLAMA_MODEL, reading=LogprobSource.TOP_LOGPROBS)


class EngineEvaluator:
    """A policy evaluator with a real engine, for contents of one organization."""

    def __init__(self, evaluator: PolicyEvaluator, owner: OrganizationId) -> None:
        self._evaluator = evaluator
        self._owner = owner

    def judged(self, content: Content) -> JudgedContent:
        """Return the content with its keys."""
        return self._evaluator.judged_content(self._owner, _REQUEST, content)

    async def decide(
        self, content: Content, rules: Sequence[str]
    ) -> tuple[EvaluationDecision, ...]:
        """Every rule on one content, one after another."""
        return await self._evaluator.evaluate(
            self.judged(content), [policy(rule) for rule in rules]
        )

    async def score(self, content: Content, rule: str) -> Score | None:
        """None where the judge gave no answer that counts."""
        (decision,) = await self.decide(content, [rule])
        return decision.score


@asynccontextmanager
async def opened(
    judging: Judging, order: PromptOrder, *, bytes_per_token: int = 8, secret: bytes = FIXED_SECRET
) -> AsyncGenerator[EngineEvaluator]:
    """With the fixed secret, the same content has the same delimiter in every run.

    By default there is one window, whatever the estimate says: windows would be measured else.
    """
    profile = JudgeProfile(
        model=judging.model,
        context_tokens=SLOT_TOKENS,
        question_tokens_max=128,
        order=order,
        reading=judging.reading,
        bytes_per_token=bytes_per_token,
        coverage_floor_basis_points=1,
    )
    async with backend_of(judging.engine.base_url, total_seconds=DEADLINE_SECONDS) as port:
        evaluator = PolicyEvaluator(_config(profile), port, SystemClock(), secret=secret)
        await evaluator.prepare()
        fixed = secret == FIXED_SECRET
        owner = FIXED_ORGANIZATION if fixed else OrganizationId(time_ordered_uuid())
        yield EngineEvaluator(evaluator, owner)


def fresh_secret() -> bytes:
    """Return a secret whose delimiters are in no cache."""
    return secrets.token_bytes(32)


def saying(text: str, direction: JudgedDirection = Direction.REQUEST) -> Content:
    """One part alone."""
    return Content(direction=direction, parts=(ContentPart("text", text),), opening=1)


def policy(rule: str) -> AppliedPolicy:
    """Return a monitoring policy."""
    return AppliedPolicy(
        id=PolicyId(time_ordered_uuid()),
        version=1,
        rule=rule,
        direction=Direction.BOTH,
        mode=Mode.MONITORING,
        match_threshold_basis_points=_THRESHOLD_BASIS_POINTS,
    )


def _config(profile: JudgeProfile) -> JudgeConfig:
    return JudgeConfig(
        backend="judge",
        profile=profile,
        has_tokenizer=True,
        deadline_seconds=DEADLINE_SECONDS,
        request_tokens_max=100_000_000,
        organization_tokens_per_minute=1_000_000_000,
        request_questions_max=1,
        organization_questions_max=1,
        worker_questions_max=1,
        verdicts_max=1,
        verdict_seconds=1.0,
    )
