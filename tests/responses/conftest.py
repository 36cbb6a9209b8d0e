"""One gateway in front of one scripted upstream per module; every test is a customer of its own."""

import msgspec
import pytest

from tests.support.deployment import EVERYTHING, MODEL, model, offering
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
RESTLESS_MODEL = "example/restless"
"""Whose backend is given no time to pause."""


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
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
    return msgspec.structs.replace(offered, backends=backends)
