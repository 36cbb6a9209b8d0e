"""One gateway in front of one scripted upstream per module; every test is a customer of its own."""

import json
import tomllib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from tests.clients.recording import Shows
from tests.support.deployment import MODEL, Deployment, customer_of, model, offering
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
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.cli.trial import scripted_engine
from tollhouse.settings import Settings

__all__ = ["database", "database_url", "org", "other_org", "settings"]

AGENT_MODEL = "example/agent"
STRICT_MODEL = "example/strict"
KNOWN_MODEL = "gpt-5.5"
"""A name that Codex knows: it then sends custom tools and options of the model."""


def agent_model(**fields: object) -> dict[str, object]:
    """The model of a trial, as `tollhouse up` configures it, at the prices of the tests."""
    trial = tomllib.loads(scripted_engine.configuration("http://127.0.0.1:1/v1"))["models"]["test"]
    return {**trial, **{name: model()[name] for name in ("backend", "pricing")}, **fields}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with running_upstream() as running:
        yield running


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    models = {
        MODEL: model(),
        AGENT_MODEL: agent_model(),
        KNOWN_MODEL: agent_model(),
        STRICT_MODEL: agent_model(drops_unsupported_tools=False),
    }
    return offering(settings, upstream.base_url, models=models)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(offered: Settings) -> AsyncIterator[Gateway]:
    async with running_gateway(offered) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def deployment(
    gateway: Gateway, upstream: ScriptedUpstream, org: OrganizationFixture
) -> Deployment:
    upstream.scripts.clear()
    return await customer_of(gateway, upstream, org)


@pytest.fixture
def shows(record_property: Callable[[str, object], None]) -> Shows:
    def record(client: str, *abilities: str, gap: str | None = None) -> None:
        for ability in abilities:
            record_property("shows", json.dumps([client, ability, gap]))

    return record


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The empty repository in which an agent works."""
    made = tmp_path / "repository"
    made.mkdir()
    return made
