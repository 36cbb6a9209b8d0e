"""One judge and one gateway for each kind of settings per module; customers of their own."""

from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from tests.support.deployment import MODEL, customer_of, model, offering
from tests.support.judge import ScriptedJudge, running_judge
from tests.support.judged_deployment import (
    FALLING_BACK,
    JudgedDeployment,
    OpenJudged,
    judged_by,
    judged_deployment_of,
    sending_at_once,
)
from tests.support.organization_fixture import OrganizationFixture
from tests.support.shared_deployment import upstream
from tests.support.shared_gateway import (
    Gateways,
    database,
    database_url,
    gateways,
    org,
    other_org,
    settings,
)
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

__all__ = [
    "database",
    "database_url",
    "gateways",
    "org",
    "other_org",
    "settings",
    "upstream",
]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def running() -> AsyncIterator[ScriptedJudge]:
    async with running_judge(ScriptedJudge()) as judge:
        yield judge


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    models = {
        MODEL: model(input_modalities=["text", "image"], image_tokens=100),
        FALLING_BACK: model(backend="late", fallbacks=[MODEL]),
    }
    offered = offering(settings, upstream.base_url, models=models)
    late = {"late": {"replicas": [upstream.base_url], "takes": ["cache_salt"]}}
    return msgspec.structs.replace(offered, backends=offered.backends | late)


@pytest_asyncio.fixture(loop_scope="module")
async def open_judged(
    gateways: Gateways, upstream: ScriptedUpstream, running: ScriptedJudge, org: OrganizationFixture
) -> OpenJudged:
    """Upstream and judge are without the scripts of other tests."""
    running.reset()
    upstream.scripts.clear()
    upstream.seen.clear()

    async def opened(offered: Settings, **bounds: object) -> JudgedDeployment:
        gateway = await gateways.offering(judged_by(offered, running.base_url, **bounds))
        return judged_deployment_of(await customer_of(gateway, upstream, org), running)

    return opened


@pytest_asyncio.fixture(loop_scope="module")
async def judged(open_judged: OpenJudged, offered: Settings) -> JudgedDeployment:
    return await open_judged(offered)


@pytest_asyncio.fixture(loop_scope="module")
async def impatient(open_judged: OpenJudged, offered: Settings) -> JudgedDeployment:
    """A gateway that sends the status line at once."""
    return await open_judged(sending_at_once(offered))
