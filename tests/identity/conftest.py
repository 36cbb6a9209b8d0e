"""One database and one gateway per module: tests keep apart by organization, as customers do.

A module of async tests says so: `pytestmark = pytest.mark.asyncio(loop_scope="module")`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import httpx2
import msgspec
import pytest
import pytest_asyncio
import uvloop

from tests.identity.creations import START
from tests.support import catalogs
from tests.support.gateway import Gateway, running_gateway, settings_for
from tests.support.organization_fixture import OrganizationFixture
from tests.support.shared_gateway import (
    database,
    database_url,
    gateway,
    org,
    other_org,
)
from tollhouse.base.clock import HeldClock
from tollhouse.projects.types import Project
from tollhouse.settings import LedgerSettings, Settings

__all__ = ["database", "database_url", "gateway", "org", "other_org"]


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop that workers run on."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    """Of a sandbox with a model, where every operation can be carried out."""
    return msgspec.structs.replace(
        settings_for(database_url),
        ledger=LedgerSettings(is_sandbox=True),
        backends=catalogs.BACKENDS,
        models=catalogs.MODELS,
    )


@pytest.fixture(scope="module")
def moved_clock() -> HeldClock:
    return HeldClock(START)


@pytest.fixture
def clock(moved_clock: HeldClock) -> HeldClock:
    """The time of `held`, which begins anew for each test."""
    moved_clock.advance(START - moved_clock.now())
    return moved_clock


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def moved_gateway(settings: Settings, moved_clock: HeldClock) -> AsyncIterator[Gateway]:
    async with running_gateway(settings, moved_clock) as running:
        yield running


@pytest.fixture
def held(moved_gateway: Gateway, clock: HeldClock) -> Gateway:
    """A gateway whose time the test holds."""
    assert clock.now() == START
    return moved_gateway


@pytest_asyncio.fixture(loop_scope="module")
async def client(held: Gateway, org: OrganizationFixture) -> AsyncIterator[httpx2.AsyncClient]:
    """An Admin key with all permissions, at the gateway whose time the test holds."""
    async with held.client((await org.admin_key()).value) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def project(org: OrganizationFixture) -> Project:
    return await org.project()
