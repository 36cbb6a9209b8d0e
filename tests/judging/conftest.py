"""A scripted judge, and the gateway's way of asking it."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

import pytest

from tests.judging.cases import PROFILE
from tests.support.gateway import PATIENCE_SECONDS
from tests.support.judge import ScriptedJudge, backend_of, running_judge, tokenize
from tollhouse.backends.openai_http import OpenAiBackend
from tollhouse.base.clock import SystemClock
from tollhouse.judging import variants
from tollhouse.judging.asking import Asking
from tollhouse.judging.cache import VerdictCache
from tollhouse.judging.engine import EngineJudge
from tollhouse.judging.slots import Slots
from tollhouse.judging.types import Profile

Asks = Callable[..., Asking]


@pytest.fixture
async def judge() -> AsyncIterator[ScriptedJudge]:
    """Tests script it."""
    async with running_judge(ScriptedJudge()) as running:
        yield running


@pytest.fixture
async def backend(judge: ScriptedJudge) -> AsyncIterator[OpenAiBackend]:
    async with backend_of(judge.base_url) as opened:
        yield opened


@pytest.fixture
async def found_variants() -> variants.Variants:
    async def ask(text: str) -> Sequence[int]:
        return tokenize(text)

    return await variants.find(ask)


@pytest.fixture
def engine(backend: OpenAiBackend, found_variants: variants.Variants) -> Callable[..., EngineJudge]:
    """The judge behind the port, with any field of its profile changed."""

    def make(**changes: object) -> EngineJudge:
        profile: Profile = replace(PROFILE, **changes)
        return EngineJudge(backend, profile, found_variants, backend="judge")

    return make


@pytest.fixture
def asking(engine: Callable[..., EngineJudge]) -> Asks:
    """Whoever asks, with bounds of the test's own."""

    def make(
        *,
        request_max: int = 8,
        organization_max: int = 64,
        worker_max: int = 256,
        deadline_seconds: float = PATIENCE_SECONDS,
        verdicts_max: int = 1_000,
        **profile: object,
    ) -> Asking:
        return Asking(
            engine(**profile),
            Slots(worker_max=worker_max, organization_max=organization_max),
            VerdictCache(SystemClock(), verdicts_max=verdicts_max, age_seconds_max=600.0),
            request_max=request_max,
            deadline_seconds=deadline_seconds,
        )

    return make
