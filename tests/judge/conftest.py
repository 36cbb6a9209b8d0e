"""A scripted judge, its client and a question runner."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

import pytest

from tests.judge.cases import PROFILE
from tests.support.gateway import TIMEOUT_SECONDS
from tests.support.judge import ScriptedJudge, backend_of, running_judge, tokenize
from tollhouse.backends.openai_http import OpenAiBackend
from tollhouse.base.clock import SystemClock
from tollhouse.evaluation.judge import yes_no_tokens
from tollhouse.evaluation.judge.client import JudgeClient
from tollhouse.evaluation.judge.question_runner import QuestionRunner
from tollhouse.evaluation.judge.quotas import FairSemaphore
from tollhouse.evaluation.judge.verdict_cache import VerdictCache
from tollhouse.evaluation.types import JudgeProfile

Asks = Callable[..., QuestionRunner]


@pytest.fixture
async def judge() -> AsyncIterator[ScriptedJudge]:
    """A judge whose answers the test scripts."""
    async with running_judge(ScriptedJudge()) as running:
        yield running


@pytest.fixture
async def backend(judge: ScriptedJudge) -> AsyncIterator[OpenAiBackend]:
    async with backend_of(judge.base_url) as opened:
        yield opened


@pytest.fixture
async def found_variants() -> yes_no_tokens.YesNoTokens:
    async def token_ids(text: str) -> Sequence[int]:
        return tokenize(text)

    return await yes_no_tokens.find_yes_no_tokens(token_ids)


@pytest.fixture
def engine(
    backend: OpenAiBackend, found_variants: yes_no_tokens.YesNoTokens
) -> Callable[..., JudgeClient]:
    """Makes a judge client, with any field of its profile changed."""

    def make(**changes: object) -> JudgeClient:
        profile: JudgeProfile = replace(PROFILE, **changes)
        return JudgeClient(backend, profile, found_variants, backend="judge")

    return make


@pytest.fixture
def asking(engine: Callable[..., JudgeClient]) -> Asks:
    """Makes a question runner with bounds of the test."""

    def make(
        *,
        request_max: int = 8,
        organization_max: int = 64,
        worker_max: int = 256,
        deadline_seconds: float = TIMEOUT_SECONDS,
        verdicts_max: int = 1_000,
        **profile: object,
    ) -> QuestionRunner:
        return QuestionRunner(
            engine(**profile),
            FairSemaphore(worker_max=worker_max, organization_max=organization_max),
            VerdictCache(SystemClock(), verdicts_max=verdicts_max, age_seconds_max=600.0),
            request_max=request_max,
            deadline_seconds=deadline_seconds,
        )

    return make
