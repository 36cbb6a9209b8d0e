"""One gateway in front of one scripted upstream per module; every test is a customer of its own."""

from collections.abc import AsyncIterator

import msgspec
import pytest_asyncio

from tests.support.deployment import EVERYTHING, MODEL, Deployment, customer_of, model, offering
from tests.support.gateway import Gateway, running_gateway
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

PLAIN_MODEL = "example/plain"
RESTLESS_MODEL = "example/restless"
"""Whose backend is given no time to pause."""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with running_upstream() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(settings: Settings, upstream: ScriptedUpstream) -> AsyncIterator[Gateway]:
    """A model that has everything, one that has nothing but text, and one without patience."""
    nothing: dict[str, object] = {name: [] for name in EVERYTHING}
    models = {
        MODEL: model(input_modalities=["text", "image", "file"], image_tokens=100),
        PLAIN_MODEL: model(**nothing),
        RESTLESS_MODEL: model(backend="restless", **nothing),
    }
    offered = offering(settings, upstream.base_url, models=models)
    restless = {"replicas": [upstream.base_url], "idle_seconds": 0.2}
    backends = offered.backends | {"restless": restless}
    async with running_gateway(msgspec.structs.replace(offered, backends=backends)) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def deployment(
    gateway: Gateway, upstream: ScriptedUpstream, org: OrganizationFixture
) -> Deployment:
    return await customer_of(gateway, upstream, org)
