"""A real model behind llama.cpp's server as judge. It proves the wire, and claims no accuracy."""

from collections.abc import AsyncIterator, Iterator, Sequence

import pytest

from tests.judging.cases import policy, saying, subject_of
from tests.support.engine import Engine, running_engine
from tests.support.gateway import PATIENCE_SECONDS
from tests.support.judge import backend_of
from tollhouse.base.clock import SystemClock
from tollhouse.judging import variants
from tollhouse.judging.asking import Asking
from tollhouse.judging.cache import VerdictCache
from tollhouse.judging.engine import EngineJudge
from tollhouse.judging.slots import Slots
from tollhouse.judging.types import Outcome, Profile
from tollhouse.judging.variants import Variant, Variants
from tollhouse.policies.types import Mode

PROFILE = Profile(
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
async def found(smollm2: Engine) -> Variants:
    async def tokenize(text: str) -> Sequence[int]:
        return smollm2.tokens_of(text)

    return await variants.find(tokenize)


@pytest.fixture
async def asking(smollm2: Engine, found: Variants) -> AsyncIterator[Asking]:
    async with backend_of(smollm2.base_url) as backend:
        yield Asking(
            EngineJudge(backend, PROFILE, found, backend="smollm2"),
            Slots(worker_max=1, organization_max=1),
            VerdictCache(SystemClock(), verdicts_max=10, age_seconds_max=600.0),
            request_max=1,
            deadline_seconds=PATIENCE_SECONDS,
        )


async def test_its_own_tokenizer_says_which_spellings_count(found: Variants) -> None:
    assert set(found.all) == {
        Variant("Yes", "No", 10539, 5230),
        Variant("yes", "no", 10407, 4607),
        Variant(" Yes", " No", 9230, 2838),
        Variant(" yes", " no", 9805, 787),
    }


async def test_a_real_model_gives_a_score(asking: Asking) -> None:
    rule = policy("Is it about food?", mode=Mode.MONITORING, threshold_basis_points=1)

    (decision,) = await asking.examine(subject_of(saying("How is bread baked?")), [rule])

    assert decision.outcome is Outcome.MATCH
    assert decision.score is not None
    assert 0 < decision.score.lowest_basis_points <= decision.score.highest_basis_points < 10_000
