"""One gateway per module, with a public address, a model for everything and one for text alone."""

from collections.abc import AsyncIterator

import httpx2
import msgspec
import pytest
import pytest_asyncio

from tests.support.deployment import EVERYTHING, MODEL, Deployment, model, offering
from tests.support.own_customer import deployment
from tests.support.shared_deployment import gateway, upstream
from tests.support.shared_gateway import database, database_url, org, other_org, settings
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

__all__ = [
    "database",
    "database_url",
    "deployment",
    "gateway",
    "org",
    "other_org",
    "settings",
    "upstream",
]

PLAIN_MODEL = "example/plain"
PUBLIC_URL = "https://gateway.example"
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
COUNT_TOKENS = "/v1/messages/count_tokens"


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    nothing: dict[str, object] = {name: [] for name in EVERYTHING}
    every_media = ["text", "image", "audio", "video", "file"]
    models = {MODEL: model(input_modalities=every_media), PLAIN_MODEL: model(**nothing)}
    offered = offering(settings, upstream.base_url, models=models)
    server = msgspec.structs.replace(settings.server, public_url=PUBLIC_URL)
    return msgspec.structs.replace(offered, server=server)


@pytest_asyncio.fixture(loop_scope="module")
async def client(deployment: Deployment) -> AsyncIterator[httpx2.AsyncClient]:
    """The client of a customer."""
    async with deployment.customer() as opened:
        yield opened
