"""Fixtures that every kind of test may use."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Generator, Iterator

import hypothesis
import pytest

from tests.support import databases, seeds
from tests.support.engine import Engine, running_engine
from tests.support.gateway import Gateway, running_gateway, settings_for
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tests.support.upstream import running_upstream
from tests.support.vllm import running_vllm
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.app import connect
from tollhouse.settings import Settings
from tollhouse.storage import migrate
from tollhouse.storage.database import Database

# A process that a test starts would compile all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# An example that took long says something of the machine, not of the rule that it tries.
hypothesis.settings.register_profile(
    "unhurried",
    deadline=None,
    derandomize=False,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("unhurried")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let hypothesis draw from the seed of the run, before it reads its option."""
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(seeds.of_run())


def pytest_report_header() -> str:
    return f"{seeds.NAME}={seeds.of_run()}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say how to repeat the failure of a random test."""
    report = yield
    is_random = seeds.is_used_by(item.nodeid) or hypothesis.is_hypothesis_test(
        getattr(item, "obj", None)
    )
    if report.failed and is_random:
        report.sections.append(("Repeat this failure", seeds.repeating(item.nodeid)))
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """An engine of 3.4 GB and agents of hundreds of MB are never installed by surprise."""
    for marker in ("vllm", "clients"):
        if marker not in config.option.markexpr:
            unwanted = [item for item in items if item.get_closest_marker(marker)]
            config.hook.pytest_deselected(items=unwanted)
            items[:] = [item for item in items if item not in unwanted]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many checks the official SDKs made, which no count of tests tells."""
    passed: list[pytest.TestReport] = terminalreporter.getreports("passed")
    counts = [
        int(str(count))
        for report in passed
        for name, count in report.user_properties
        if report.when == "call" and name == "sdk_checks"
    ]
    if counts:
        terminalreporter.write_line(f"{sum(counts)} checks of {len(counts)} SDK environments")


@pytest.fixture(scope="session")
def migrated_template() -> Iterator[str]:
    """The name of a database at the newest schema, to clone from."""
    name = databases.fresh_name()

    async def prepare() -> None:
        await databases.create(name)
        await migrate.migrate(databases.url_of(name))

    asyncio.run(prepare())
    yield name
    asyncio.run(databases.drop(name))


@pytest.fixture
async def database_url(migrated_template: str) -> AsyncIterator[str]:
    """A migrated database of the test's own."""
    async with databases.temporary(template=migrated_template) as url:
        yield url


@pytest.fixture
def settings(database_url: str) -> Settings:
    return settings_for(database_url)


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[Database]:
    """A pool of the test's own, beside the gateway's."""
    opened = await connect(settings)
    yield opened
    await opened.close()


@pytest.fixture
async def org(database: Database) -> OrganizationFixture:
    """An organization to act in."""
    return await new_organization_fixture(database)


@pytest.fixture
async def other_org(database: Database) -> OrganizationFixture:
    """Somebody else's organization."""
    return await new_organization_fixture(database, "another organization")


@pytest.fixture
async def gateway(settings: Settings) -> AsyncIterator[Gateway]:
    """The application behind its real server."""
    async with running_gateway(settings) as running:
        yield running


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    """An engine that does as the test says."""
    async with running_upstream() as running:
        yield running


@pytest.fixture(scope="session")
def llama_engine() -> Iterator[Engine]:
    """A small real engine, for all tests of a process."""
    with running_engine() as running:
        yield running


@pytest.fixture(scope="session")
def vllm_engine() -> Iterator[Engine]:
    """For tests that are marked `vllm`."""
    with running_vllm() as running:
        yield running


@pytest.fixture(scope="session")
def vllm_replicas(vllm_engine: Engine) -> Iterator[tuple[Engine, Engine]]:
    """Two of them with the same model."""
    with running_vllm() as second:
        yield vllm_engine, second
