"""One database and one gateway for each module of journeys to real engines."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.journeys.engine_customer import EngineCustomer
from tests.support.deployment import MODEL, customer_of, model, offering
from tests.support.engine import Engine
from tests.support.gateway import Gateway, running_gateway
from tests.support.organization_fixture import OrganizationFixture
from tests.support.shared_gateway import (
    database,
    database_url,
    org,
    other_org,
    settings,
)
from tests.support.upstream import running_upstream
from tests.support.vllm import NAME
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings
from tollhouse.trial.llama import SLOT_TOKENS

ENGINES = ["llama_engine", pytest.param("vllm_engine", marks=pytest.mark.vllm)]

__all__ = ["database", "database_url", "org", "other_org", "settings"]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    """The deployment needs an upstream; no test here calls it."""
    async with running_upstream() as running:
        yield running


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each real engine in turn; a module may have another."""
    return request.getfixturevalue(request.param)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(settings: Settings, engine: Engine) -> AsyncIterator[Gateway]:
    """With what both engines do with this model; no more is declared."""
    offered = model(
        context_length=SLOT_TOKENS,
        max_output_length=256,
        upstream_model=NAME,
        features=["json_mode", "structured_outputs"],
        sampling_parameters=[
            *("temperature", "top_p", "frequency_penalty", "presence_penalty", "logit_bias"),
            *("seed", "stop", "logprobs", "top_logprobs"),
        ],
    )
    shelf = offering(
        settings,
        engine.base_url,
        models={MODEL: offered},
        takes=["continuous_usage_stats", "timings_per_token"],
        counts_tokens_by="messages",
        counts_exactly=True,
    )
    async with running_gateway(shelf) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def customer(
    gateway: Gateway, engine: Engine, upstream: ScriptedUpstream, org: OrganizationFixture
) -> EngineCustomer:
    """A customer of the test's own; nobody else asks the engine meanwhile."""
    return EngineCustomer(await customer_of(gateway, upstream, org), engine)
