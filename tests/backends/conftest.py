"""Backends with upstreams of the test's own. After every test nothing of them may be left."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import UTC, datetime

import pytest
import uvloop

from tests.backends.wire import Upstream, running_upstream
from tests.support.gateway import TIMEOUT_SECONDS
from tollhouse.backends.openai_http import OpenAiBackend
from tollhouse.backends.transport import Transport
from tollhouse.backends.types import BackendConfig
from tollhouse.base.clock import HeldClock
from tollhouse.observability import registry

Build = Callable[..., OpenAiBackend]
API_KEY = "sk-upstream-0123456789abcdef"
PATIENT = {
    "api_key": API_KEY,
    "connect_seconds": TIMEOUT_SECONDS,
    "total_seconds": TIMEOUT_SECONDS,
}


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Workers run on uvloop; closing and cancelling differ between the two."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with running_upstream() as running:
        yield running


@pytest.fixture
async def other_upstream() -> AsyncIterator[Upstream]:
    async with running_upstream() as running:
        yield running


@pytest.fixture
def clock() -> HeldClock:
    """Stands still, so that a breaker opens and closes when the test says so."""
    return HeldClock(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
async def transport() -> AsyncIterator[Transport]:
    before = asyncio.all_tasks()
    opened = Transport()
    yield opened
    await opened.close()
    if left := asyncio.all_tasks() - before - {asyncio.current_task()}:
        _, running = await asyncio.wait(left, timeout=TIMEOUT_SECONDS)
        assert not running


@pytest.fixture
def build(transport: Transport, clock: HeldClock) -> Iterator[Build]:
    """Make a backend of these upstreams; other arguments go into its configuration."""

    def built(*upstreams: Upstream, over: Transport = transport, **values: object) -> OpenAiBackend:
        config = BackendConfig(
            name="tested",
            replicas=tuple(upstream.url for upstream in upstreams),
            replica_names=tuple(upstream.name for upstream in upstreams),
            **{**PATIENT, **values},  # pyright: ignore[reportArgumentType]
        )
        return OpenAiBackend(config, over, clock)

    yield built
    assert counted('in_flight{backend="tested"}') == 0


def counted(series: str) -> float:
    """What a metric of backends shows, or zero."""
    page = registry.exposition(None).decode()
    found = re.search(rf"^tollhouse_backend_{re.escape(series)} (\S+)$", page, re.MULTILINE)
    return float(found[1]) if found else 0.0


@pytest.fixture
def backend(build: Build, upstream: Upstream) -> OpenAiBackend:
    return build(upstream)
