"""One gateway per module, with a public address, a model for everything and one for text alone."""

from collections.abc import AsyncIterator

import httpx2
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
PUBLIC_URL = "https://gateway.example"
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
COUNT_TOKENS = "/v1/messages/count_tokens"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with running_upstream() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(settings: Settings, upstream: ScriptedUpstream) -> AsyncIterator[Gateway]:
    nothing: dict[str, object] = {name: [] for name in EVERYTHING}
    every_media = ["text", "image", "audio", "video", "file"]
    models = {MODEL: model(input_modalities=every_media), PLAIN_MODEL: model(**nothing)}
    offered = offering(settings, upstream.base_url, models=models)
    server = msgspec.structs.replace(settings.server, public_url=PUBLIC_URL)
    async with running_gateway(msgspec.structs.replace(offered, server=server)) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def deployment(
    gateway: Gateway, upstream: ScriptedUpstream, org: OrganizationFixture
) -> Deployment:
    return await customer_of(gateway, upstream, org)


@pytest_asyncio.fixture(loop_scope="module")
async def client(deployment: Deployment) -> AsyncIterator[httpx2.AsyncClient]:
    """The client of a customer."""
    async with deployment.customer() as opened:
        yield opened
