"""vLLM with its prefix cache: no organization feels by the time what another one has sent.

vLLM on CPU remembers prompts in blocks of 128 tokens, so that the prompts here are long.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support import seeds
from tests.support.deployment import MODEL, customer_of, model, offering
from tests.support.engine import Engine
from tests.support.gateway import Gateway, running_gateway
from tests.support.organization_fixture import OrganizationFixture
from tests.support.prefix_timing import same_distribution_p, time_prompts
from tests.support.vllm import CONTEXT_TOKENS, NAME
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.vllm]

PROMPTS = 30
WORDS = 1_000


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(settings: Settings, vllm_engine: Engine) -> AsyncIterator[Gateway]:
    offered = model(
        context_length=CONTEXT_TOKENS,
        max_output_length=256,
        upstream_model=NAME,
        features=["cache_salt"],
    )
    shelf = offering(settings, vllm_engine.base_url, models={MODEL: offered})
    async with running_gateway(shelf) as running:
        yield running


@pytest.mark.clock
async def test_the_first_token_comes_no_sooner_for_a_prompt_that_another_organization_sent(
    gateway: Gateway,
    upstream: ScriptedUpstream,
    org: OrganizationFixture,
    other_org: OrganizationFixture,
) -> None:
    first = await customer_of(gateway, upstream, org)
    second = await customer_of(gateway, upstream, other_org)

    timings = await time_prompts(first, second, seeds.chance(), prompts=PROMPTS, words=WORDS)

    assert same_distribution_p(timings.own, timings.fresh) < 1e-6, "the engine caches"
    assert same_distribution_p(timings.foreign, timings.fresh) > 0.01
