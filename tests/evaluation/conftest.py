"""One gateway with a scripted upstream and a scripted judge per module; customers of their own."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.deployment import MODEL, customer_of, model, offering
from tests.support.gateway import Gateway, running_gateway
from tests.support.judge import ScriptedJudge, running_judge
from tests.support.judged_deployment import JudgedDeployment, judged_by, judged_deployment_of
from tests.support.organization_fixture import OrganizationFixture
from tests.support.shared_gateway import (
    database,
    database_url,
    org,
    other_org,
    peppers,
    settings,
)
from tests.support.upstream import running_upstream
from tollhouse.settings import Settings
from tollhouse.testing.upstream import ScriptedUpstream

__all__ = ["database", "database_url", "org", "other_org", "peppers", "settings"]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with running_upstream() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def running() -> AsyncIterator[ScriptedJudge]:
    async with running_judge(ScriptedJudge()) as judge:
        yield judge


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(
    settings: Settings, upstream: ScriptedUpstream, running: ScriptedJudge
) -> AsyncIterator[Gateway]:
    models = {MODEL: model(input_modalities=["text", "image"], image_tokens=100)}
    offered = offering(settings, upstream.base_url, models=models)
    judged = judged_by(offered, running.base_url)
    async with running_gateway(judged) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def judged(
    gateway: Gateway, upstream: ScriptedUpstream, running: ScriptedJudge, org: OrganizationFixture
) -> JudgedDeployment:
    """A customer, and a judge without the scripts of other tests."""
    running.reset()
    upstream.scripts.clear()
    return judged_deployment_of(await customer_of(gateway, upstream, org), running)
