"""A real model behind llama.cpp's server as judge. It proves the wire, and claims no accuracy."""

from collections.abc import AsyncIterator, Iterator, Sequence

import pytest

from tests.judge.cases import policy, saying, subject_of
from tests.support.engine import Engine, running_engine
from tests.support.gateway import TIMEOUT_SECONDS
from tests.support.judge import backend_of
from tollhouse.base.clock import SystemClock
from tollhouse.base.policies import EvaluationOutcome, Mode
from tollhouse.evaluation.judge import yes_no_tokens
from tollhouse.evaluation.judge.client import JudgeClient
from tollhouse.evaluation.judge.question_runner import QuestionRunner
from tollhouse.evaluation.judge.quotas import FairSemaphore
from tollhouse.evaluation.judge.verdict_cache import VerdictCache
from tollhouse.evaluation.judge.yes_no_tokens import YesNoToken, YesNoTokens
from tollhouse.evaluation.types import JudgeProfile

PROFILE = JudgeProfile(
    model="smollm2-135m",
    context_tokens=2_048,
    question_tokens_max=100,
    coverage_floor_basis_points=1,
)
"""A model as small as this often would rather say something else than yes or no."""


@pytest.fixture(scope="module")
def smollm2() -> Iterator[Engine]:
    with running_engine() as running:
        yield running


@pytest.fixture
async def found(smollm2: Engine) -> YesNoTokens:
    async def tokenize(text: str) -> Sequence[int]:
        return smollm2.tokens_of(text)

    return await yes_no_tokens.find_yes_no_tokens(tokenize)


@pytest.fixture
async def asking(smollm2: Engine, found: YesNoTokens) -> AsyncIterator[QuestionRunner]:
    async with backend_of(smollm2.base_url) as backend:
        yield QuestionRunner(
            JudgeClient(backend, PROFILE, found, backend="smollm2"),
            FairSemaphore(worker_max=1, organization_max=1),
            VerdictCache(SystemClock(), verdicts_max=10, age_seconds_max=600.0),
            request_max=1,
            deadline_seconds=TIMEOUT_SECONDS,
        )


async def test_its_own_tokenizer_says_which_spellings_count(found: YesNoTokens) -> None:
    assert set(found.all) == {
        YesNoToken("Yes", "No", 10539, 5230),
        YesNoToken("yes", "no", 10407, 4607),
        YesNoToken(" Yes", " No", 9230, 2838),
        YesNoToken(" yes", " no", 9805, 787),
    }


async def test_a_real_model_gives_a_score(asking: QuestionRunner) -> None:
    rule = policy("Is it about food?", mode=Mode.MONITORING, threshold_basis_points=1)

    (decision,) = await asking.evaluate(subject_of(saying("How is bread baked?")), [rule])

    assert decision.outcome is EvaluationOutcome.MATCH
    assert decision.score is not None
    assert 0 < decision.score.lowest_basis_points <= decision.score.highest_basis_points < 10_000
