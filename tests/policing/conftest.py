"""One gateway with a scripted upstream and a scripted judge per module; customers of their own."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.courthouse import Courthouse, courthouse_of, judged_by
from tests.support.gateway import Gateway, running_gateway
from tests.support.judge import ScriptedJudge, running_judge
from tests.support.shared_gateway import (
    database,
    database_url,
    other_world,
    peppers,
    settings,
    world,
)
from tests.support.shop import MODEL, customer_of, model, offering
from tests.support.upstream import running_upstream
from tests.support.world import World
from tollhouse.settings import Settings
from tollhouse.testing.upstream import ScriptedUpstream

__all__ = ["database", "database_url", "other_world", "peppers", "settings", "world"]


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
async def courthouse(
    gateway: Gateway, upstream: ScriptedUpstream, running: ScriptedJudge, world: World
) -> Courthouse:
    """A customer, and a judge who has forgotten what other tests said."""
    running.reset()
    upstream.scripts.clear()
    return courthouse_of(await customer_of(gateway, upstream, world), running)
